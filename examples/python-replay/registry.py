"""A plain lease registry in Python, written from the sentences in the corpus and from nothing else."""

from dataclasses import dataclass


@dataclass
class Lease:
    run_id: str
    worker_id: str
    token: int
    expires_at: float
    acquisition: str | None = None


class Registry:
    """Gives each run to at most one worker. Time is passed in; expiry is inclusive."""

    def __init__(self, ttl: float):
        self.ttl = ttl
        self.leases: dict[str, Lease] = {}
        self.fences: dict[str, int] = {}

    def acquire(self, run_id, worker_id, now, reacquire="refuse", acquisition=None):
        """The new or extended lease, or None when the run is held."""
        lease = self.leases.get(run_id)
        if lease is not None and lease.expires_at > now:
            if not self._may_extend(lease, worker_id, reacquire, acquisition):
                return None
            expires_at = max(lease.expires_at, now + self.ttl)
            lease = Lease(run_id, worker_id, lease.token, expires_at, acquisition)
        else:
            token = self.fences.get(run_id, 0) + 1
            self.fences[run_id] = token
            lease = Lease(run_id, worker_id, token, now + self.ttl, acquisition)
        self.leases[run_id] = lease
        return lease

    def heartbeat(self, run_id, worker_id, token, now, acquisition=None):
        if not self.validate(run_id, worker_id, token, now, acquisition):
            return False
        lease = self.leases[run_id]
        lease.expires_at = max(lease.expires_at, now + self.ttl)
        return True

    def release(self, run_id, worker_id, token, acquisition=None):
        if not self._is_current(run_id, worker_id, token, acquisition):
            return False
        del self.leases[run_id]
        return True

    def validate(self, run_id, worker_id, token, now, acquisition=None):
        """Whether this is the live lease."""
        current = self._is_current(run_id, worker_id, token, acquisition)
        return current and self.leases[run_id].expires_at > now

    def state(self, run_id, now):
        lease = self.leases.get(run_id)
        if lease is None:
            return "free"
        return "held" if lease.expires_at > now else "expired"

    def _is_current(self, run_id, worker_id, token, acquisition):
        lease = self.leases.get(run_id)
        if lease is None:
            return False
        return (lease.worker_id, lease.token, lease.acquisition) == (worker_id, token, acquisition)

    @staticmethod
    def _may_extend(lease, worker_id, reacquire, acquisition):
        if lease.worker_id != worker_id:
            return False
        return reacquire == "extend" or (acquisition is not None and acquisition == lease.acquisition)
