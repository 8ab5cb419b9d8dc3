/**
 * The fence inside Redis: the script that writes looks at the lease first. Scripts run one after the other, so there is
 * never an older write in flight, and the fence that stands beside the lease needs no lock.
 *
 * All checks of all runs come before the first write: a refusal has changed nothing.
 */
import type { Script } from './scripts.ts';
import { script } from './scripts.ts';

/** Of one command. Lua takes no more than some 8,000 apart at once. */
export const MOST_WORDS = 7000;

/** Why a lease does not pass, as fields for the caller to word, or nothing when it does. `shown` is what the fence has seen. */
const REFUSAL = `
local function refusal(key, worker, token, acquisition)
  local lease = redis.call('HMGET', key, 'worker', 'token', 'acquisition', 'ended', 'shown', 'shownBy')
  if lease[1] == worker and lease[2] == token and lease[4] == 'no' and (acquisition == '' or lease[3] == acquisition) then
    local shown = tonumber(lease[5] or 0)
    if shown < tonumber(token) or (lease[5] == token and lease[6] == lease[3]) then return nil, lease end
    return {'fenced'}
  end
  if not lease[1] then return {'lost'} end
  return {'lost', lease[1], lease[2], lease[3], lease[4]}
end
local function raise(key, lease)
  if lease[5] ~= lease[2] or lease[6] ~= lease[3] then redis.call('HSET', key, 'shown', lease[2], 'shownBy', lease[3]) end
end`;

/**
 * Checks the runs of a session, answering with the first refusal and its run's place. The keys come in threes, a marker, a
 * lease and a document; the arguments in sixes, a marker, how the run is fenced, worker, token, acquisition, and the version
 * that must stand or nothing.
 */
const CHECK_RUNS = `${REFUSAL}
local count = (#KEYS - 1) / 3
local leases, documents = {}, {}
for i = 1, count do
  local key, arg = 3 * i - 1, 6 * i - 4
  if redis.call('GET', KEYS[key]) ~= ARGV[arg] then return {'gone'} end
  if ARGV[arg + 1] == 'fenced' then
    local refused, lease = refusal(KEYS[key + 1], ARGV[arg + 2], ARGV[arg + 3], ARGV[arg + 4])
    if refused then return {'refused', i, refused} end
    leases[i] = lease
  elseif ARGV[arg + 1] == 'refuse' and redis.call('HEXISTS', KEYS[key + 1], 'token') == 1 then
    return {'unfenced', i}
  end
  documents[i] = redis.call('HMGET', KEYS[key + 2], 'version', 'json')
  if ARGV[arg + 5] ~= '' and (documents[i][1] or '0') ~= ARGV[arg + 5] then return {'conflict', i} end
end`;

const MARKER = `if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {'gone'} end`;

/** Opens a session: raises the fences and reads. The argument before those of the runs: the marker. */
export const OPEN_DOCUMENTS: Script = script(`${MARKER}${CHECK_RUNS}
for i, lease in pairs(leases) do raise(KEYS[3 * i], lease) end
local found = {}
for i = 1, count do found[i] = {documents[i][1] or '0', documents[i][2] or '{}'} end
return {'opened', found}
`);

/** Commits a session. After the runs' arguments come the documents, in the same order: the new text, or nothing to leave it. */
export const COMMIT_DOCUMENTS: Script = script(`${MARKER}${CHECK_RUNS}
for i, lease in pairs(leases) do raise(KEYS[3 * i], lease) end
for i = 1, count do
  local json = ARGV[1 + 6 * count + i]
  if json ~= '' then
    redis.call('HSET', KEYS[3 * i + 1], 'version', string.format('%.0f', (documents[i][1] or 0) + 1), 'json', json)
  end
end
return {'committed'}
`);

/**
 * Runs commands of the user's under the check. Keys: marker, lease, then what the commands touch. Arguments: marker, worker,
 * token, acquisition, then each command as its length and its words. Like MULTI, a command that fails stops
 * none after it. Answers with the results, and with the places of those that are errors, if there are any; a single result
 * that is no list comes as it is, which is quicker.
 */
export const EXEC_FENCED: Script = script(`${MARKER}
local newest = redis.call('HMGET', KEYS[2], 'worker', 'token', 'acquisition', 'ended', 'shown', 'shownBy')
if not (newest[1] == ARGV[2] and newest[2] == ARGV[3] and newest[3] == ARGV[4] and newest[4] == 'no'
  and newest[5] == ARGV[3] and newest[6] == ARGV[4]) then
  -- Not the lease that was shown last, as it mostly is.
  ${REFUSAL}
  local refused, lease = refusal(KEYS[2], ARGV[2], ARGV[3], ARGV[4])
  if refused then return {'refused', 1, refused} end
  raise(KEYS[2], lease)
end
local results, at, failed = {}, 5
repeat
  local words = tonumber(ARGV[at])
  local result = redis.pcall(unpack(ARGV, at + 1, at + words))
  at = at + words + 1
  if type(result) ~= 'table' then
    if #results == 0 and not ARGV[at] then return result end
  elseif result.err then
    result = result.err
    failed = failed or {}
    failed[#failed + 1] = #results + 1
  end
  results[#results + 1] = result
until not ARGV[at]
return {'done', results, failed}
`);

/** Why a lease is lost, from its refusal, by the rules of `lostReason`; and what is wrong with a call, or nothing. */
const FUNCTION_ERRORS = `
local function reason(refused, worker, token, acquisition)
  if refused[1] == 'fenced' then return 'superseded' end
  local newest, shown = tonumber(refused[3] or 0), tonumber(token)
  if newest ~= shown then return newest > shown and 'superseded' or 'unknown' end
  if refused[2] ~= worker then return 'unknown' end
  if acquisition ~= '' and refused[4] ~= acquisition then return 'superseded' end
  return refused[5] == 'no' and 'unknown' or refused[5]
end
local function mistake(keys, args)
  if not (keys[1] and string.find(keys[1], '}:lease:', 1, true)) then
    return 'the first key to be that of a lease, got ' .. (keys[1] and '"' .. keys[1] .. '"' or 'none')
  end
  if not string.find(args[2] or '', '^[1-9]%d*$') then
    return 'a fencing token to be a positive integer, got ' .. (args[2] and '"' .. args[2] .. '"' or 'none')
  end
  if #args < 4 then return 'a worker, a fencing token, an acquisition and a command, got ' .. #args .. ' arguments' end
  if #args - 3 > ${MOST_WORDS} then return 'a command of at most ${MOST_WORDS} words, got ' .. (#args - 3) end
end`;

/**
 * The same check for clients in any language: a function library for Redis 7, to load with `FUNCTION LOAD`. Called as
 * `FCALL lessor_exec NUMKEYS LEASE-KEY key... worker token acquisition COMMAND word...` it runs one command under the lease
 * and gives its answer. An empty acquisition is not compared.
 *
 * A lost lease is an error that begins with LEASELOST and ends with the reason, as that of `LeaseLostError`: `superseded`,
 * `released`, `revoked`, or `unknown` for a token that this run never gave to this worker. A call without a token is an
 * error too, and never unfenced. No command ran then.
 */
export const redisFunctionLibrary = `#!lua name=lessor
${REFUSAL}${FUNCTION_ERRORS}
redis.register_function('lessor_exec', function(keys, args)
  local wrong = mistake(keys, args)
  if wrong then return redis.error_reply('ERR lessor_exec expected ' .. wrong) end
  local refused, lease = refusal(keys[1], args[1], args[2], args[3])
  if refused then
    local _, before = string.find(keys[1], '}:lease:', 1, true)
    return redis.error_reply('LEASELOST Lost the lease on run "' .. string.sub(keys[1], before + 1) .. '" (token ' ..
      args[2] .. '): ' .. reason(refused, args[1], args[2], args[3]))
  end
  raise(keys[1], lease)
  return redis.call(unpack(args, 4))
end)
`;
