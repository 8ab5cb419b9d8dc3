"""Replays the scenarios of a lease on the registry beside this file, and compares every answer.

    lessor scenarios --format json | python3 replay.py
"""

import json
import sys

from registry import Registry

TTL = 10.0
OTHER = {"worker-a": "worker-b", "worker-b": "worker-a"}


class Replay:
    def __init__(self, run_id):
        self.run_id = run_id
        self.registry = Registry(TTL)
        self.now = 0.0
        self.leases = {}  # by their names in the scenario: worker, token, acquisition

    def take(self, step):
        """Makes the step's call. What differs from the right answer comes back as text."""
        call = step["call"]
        if call == "acquire":
            return self.acquire(step)
        if call == "advance":
            self.now += step["ttls"] * TTL
        elif call != "expire":  # this registry needs not be told the time
            worker, token, acquisition = self.claim(**step["claim"])
            if call == "heartbeat":
                accepted = self.registry.heartbeat(self.run_id, worker, token, self.now, acquisition)
            else:
                accepted = self.registry.release(self.run_id, worker, token, acquisition)
            if accepted != step["expect"]["accepted"]:
                return f"accepted was {accepted}"
        return None

    def acquire(self, step):
        expect, acquisition, newest = step["expect"], step.get("acquisition"), self.newest()
        lease = self.registry.acquire(self.run_id, step["worker"], self.now, step["reacquire"], acquisition)
        if lease is None or expect["answer"] == "held":
            return None if lease is None and expect["answer"] == "held" else f"answered {lease}"
        self.leases[expect["lease"]] = (lease.worker_id, lease.token, acquisition)
        right = lease.token > newest if expect["token"] == "new" else lease.token == newest
        return None if right else f"token {lease.token} after {newest}"

    def claim(self, lease, change):
        worker, token, acquisition = self.leases[lease] if lease else ("worker-a", 1, None)
        if change == "never-issued":
            token = self.newest() + 1
        return (OTHER[worker] if change == "another-worker" else worker), token, acquisition

    def newest(self):
        return max((token for _, token, _ in self.leases.values()), default=0)

    def look(self, after):
        """What differs from what has to be seen after the step."""
        lease = self.registry.leases.get(self.run_id)
        current = (lease.worker_id, lease.token, lease.acquisition) if lease else None
        left = max(0.0, lease.expires_at - self.now) / TTL if lease else 0.0
        valid = [
            name
            for name, (worker, token, acquisition) in self.leases.items()
            if self.registry.validate(self.run_id, worker, token, self.now, acquisition)
        ]
        seen = {
            "state": self.registry.state(self.run_id, self.now),
            "current": current,
            "fence": self.registry.fences.get(self.run_id, 0),
            "ttlsLeft": left,
            "valid": valid,
        }
        right = {
            "state": after["state"],
            "current": self.leases[after["lease"]] if after["lease"] else None,
            "fence": self.leases[after["newest"]][1] if after["newest"] else 0,
            "ttlsLeft": after["ttlsLeft"],
            "valid": [after["lease"]] if after["state"] == "held" else [],
        }
        return None if seen == right else f"saw {seen}, not {right}"


def main():
    corpus = json.load(sys.stdin)
    counts = {"scenarios": 0, "steps": 0, "disagreements": 0}
    for scenario in corpus["registry"] + corpus["store"]:
        replay = Replay(scenario["id"])
        counts["scenarios"] += 1
        for number, step in enumerate(scenario["steps"], 1):
            counts["steps"] += 1
            wrong = replay.take(step) or replay.look(step["after"])
            if wrong:
                counts["disagreements"] += 1
                print(f"{scenario['id']} ({scenario['title']}), step {number}: {wrong}", file=sys.stderr)
                break
    print(json.dumps(counts))
    return 1 if counts["disagreements"] else 0


if __name__ == "__main__":
    sys.exit(main())
