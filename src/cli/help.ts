/** What `--help` says. It teaches: what happens, by example, with every exit code and variable. */

export const topics = [
  'lessor',
  'run',
  'list',
  'show',
  'release',
  'watch',
  'scenarios',
  'migrate',
  'fence-table',
] as const;
export type Topic = (typeof topics)[number];

const store = `      --store URL     Where leases are kept: sqlite:/path/to/leases.db, postgres://..., redis://...
                      Default: $LESSOR_STORE, else a SQLite file of this user on this machine.`;

const json = `      --json          JSON, one object a line, for programs. Times are seconds by the store's clock.`;

const lessor = `lessor gives a run to one worker at a time.

Usage: lessor COMMAND ...

  lessor run RUN -- COMMAND...   run a command while holding RUN; wait for it if need be
  lessor list                    every run that the store knows, and who has it
  lessor show RUN                all that is known about one run
  lessor release RUN --force --reason TEXT
                                 take RUN away from the worker that has it
  lessor watch RUN...            what happens to runs, as it happens
  lessor scenarios               how a lease must behave, case by case, to test an implementation
  lessor migrate                 install the schema of the leases in PostgreSQL
  lessor fence-table TABLE       refuse late writes in a table of yours
  lessor COMMAND --help          more, with examples
  lessor --version

A run is whatever must not be done twice at a time: a job, a schedule, a queue item. Its name is yours to choose.

  $ lessor run nightly-report -- ./report.sh       once at a time, on this machine
  $ lessor list
  $ export LESSOR_STORE=postgres://db/app          from now on: once at a time, wherever this store is used
`;

const run = `Runs a command while holding a run, so that no other worker has it meanwhile.

Usage: lessor run RUN [options] -- COMMAND [ARGUMENT...]

${store}
      --ttl S         How long the run stays taken when this process dies, in seconds. Renewed all the while.
                      Default: 30. From 1 to 86400, fractions allowed.
      --wait S        While another worker has the run, wait for it this long. Default: without end.
      --try           Do not wait: exit with 75 when another worker has the run.
      --worker ID     Who we are. Default: a name for this process alone.
      --grace S       When the lease cannot be renewed, the command gets SIGTERM this long before it is killed.
                      Default: a sixth of the ttl, at most 10.

Examples:
  $ lessor run nightly-report -- ./report.sh
  $ lessor run --try import -- node import.js || echo "not now"
  $ lessor run --wait 60 --ttl 10 deploy:web -- sh -c 'echo "token $LESSOR_FENCING_TOKEN"'

The command's environment:
  LESSOR_RUN_ID, LESSOR_WORKER_ID, LESSOR_LEASE_ID
  LESSOR_FENCING_TOKEN    The number of this ownership; every later one of the run is higher. Send it with each
                          write, so that the storage can refuse one that comes too late.
  LESSOR_ACQUISITION_ID   The random id of this ownership, which a fence compares too.
  LESSOR_STORE            The store in use.

When the lease is lost: SIGTERM to the command and all that it started while the lease still holds, SIGKILL before
anybody else can have the run. When the store says that the run was taken or released by force: SIGTERM at once. A small
second process watches, so that this holds too when lessor itself is killed or frozen. What runs in a session of its own
(setsid), and what was already sent over a network, is beyond reach: for that there is the token.

Signals: HUP, INT, QUIT, TERM, USR1, USR2 and WINCH go to the command's process group. What is left of the group when
the command ends is ended too, and then the run is free. Ctrl-Z stops the command and lessor; nothing is renewed then,
so a command that is not continued in time is ended. The command has no controlling terminal (/dev/tty). On Windows
\`lessor run\` works within WSL.

Output: stdout is the command's alone. lessor speaks on stderr, and only when there is something to say.

Exit codes:
  the command's own; 128 + N when signal N ended it
  64   the arguments make no sense
  69   the store could not be asked
  75   another worker has the run
  79   the lease was lost while the command ran
  126  the command could not be started
  127  the command was not found
  70   a mistake in lessor itself
`;

const list = `Lists every run that the store knows: who has it, or had it last.

Usage: lessor list [options]

${store}
      --state STATE   Only runs that are free, held or expired.
      --worker ID     Only runs whose newest lease is this worker's.
      --prefix TEXT   Only runs whose name starts with TEXT.
${json}

Examples:
  $ lessor list --state held
  $ lessor list --state expired --json | jq -r .runId

held: a worker has it. expired: its worker has stopped renewing; the next one to ask gets the run. free: given back.
Exit codes: 0, 64 for wrong arguments, 69 when the store could not be asked, 74 when the output could not be written.
`;

const show = `Shows all that the store knows about one run.

Usage: lessor show RUN [options]

${store}
${json}

Examples:
  $ lessor show nightly-report
  $ lessor show nightly-report --json | jq .fencingToken

What is shown was true when it was asked, and gives no right to write.
Exit codes: 0, 1 when the run was never leased, 64 for wrong arguments, 69 when the store could not be asked, 74 when
the output could not be written.
`;

const release = `Takes a run away from the worker that has it, and keeps in its record who did so, when and why.

Usage: lessor release RUN --force --reason TEXT [options]

      --force         Required: the worker may be at work. It learns of this at its next renewal, and its fenced
                      writes are refused from now on. Everything else that it does goes on until then.
      --reason TEXT   Required: why.
      --by WHO        Who does it. Default: you, on this machine.
${store}
${json}

Example:
  $ lessor release nightly-report --force --reason "stuck since noon"

Exit codes: 0, 1 when nobody had the run, 64 for wrong arguments, 69 when the store could not be asked, 74 when the run
was taken and the output could not be written.
`;

const watch = `Follows runs: who gets them, gives them back, loses them. One line for each step, until Ctrl-C.

Usage: lessor watch RUN... [options]

${store}
      --json          JSON, one object a line, for programs: { at, runId, what } and the run's record after the step.
                      Times are seconds.

Examples:
  $ lessor watch nightly-report import
  $ lessor watch nightly-report --json | jq -r 'select(.what == "expired").workerId'

First comes how each run is found: never leased, free, held or expired. Then each step: granted, taken over (from a
worker whose lease had expired), expired, released, revoked. Renewals are no steps. A step is told at once where the
store can push, else within about a second; of leases that come and go between two looks, only the newest is told.
While the store does not answer, that is said once on stderr, and watch goes on.
Exit codes: 0 when it is told to end (Ctrl-C, SIGTERM) or nobody reads its output any more, 64 for wrong arguments,
69 when the store could not be opened or has lost its leases, 74 when the output could not be written.
`;

const scenarios = `Prints the scenarios that every implementation of a lease must pass, generated from the statechart.

Usage: lessor scenarios [--format json|markdown|schema]

      --format FORMAT json: for a program that replays them, in any language. The default.
                      markdown: for people. schema: the JSON schema of the first.

Example:
  $ lessor scenarios | python3 replay.py

Exit codes: 0, 64 for wrong arguments, 74 when the output could not be written.
`;

const migrate = `Installs the schema of the leases in a PostgreSQL database, or brings it up to this version.

Usage: lessor migrate --store postgres://... [--schema NAME]

      --store URL     The database. Default: $LESSOR_STORE. Other stores make their tables themselves.
      --schema NAME   Holds the leases and nothing else. Default: lessor.

Example:
  $ lessor migrate --store postgres://db/app

Running it again changes nothing, and several at once wait for each other.
Exit codes: 0, 64 for wrong arguments, 69 when nothing was changed: no server, no right, or a newer schema.
`;

const fenceTable = `Puts the fence into a table of yours: its rows are then written only with the newest fencing token of their run,
by any client in any language.

Usage: lessor fence-table TABLE --run COLUMN --token COLUMN [options]
       lessor fence-table TABLE --remove [options]

      --run COLUMN    The column that names the run.
      --token COLUMN  The column for the token, a number. Whoever writes a row under a lease writes its token there.
      --remove        Takes the fence away again.
      --print         Only prints the SQL, for a migration of yours. Nothing is asked of the store.
      --schema NAME   PostgreSQL: the schema of the leases. Default: lessor.
${store}
                      The table is in the same database or file.

Examples:
  $ lessor fence-table jobs --run id --token fencing_token
  $ lessor fence-table app.jobs --run id --token fencing_token --store postgres://db/app --print > fence.sql

An update that leaves the token column out goes by the token that the row carries, and so does a deletion.
Rows of runs that were never leased carry no token.
Exit codes: 0, 64 for wrong arguments or a table to be fenced that is not there, 69 when the store could not be
asked, 74 when the output could not be written.
`;

/** The help text of a command, or of lessor as a whole. */
export const helpTexts: Readonly<Record<Topic, string>> = {
  lessor,
  run,
  list,
  show,
  release,
  watch,
  scenarios,
  migrate,
  'fence-table': fenceTable,
};
