/**
 * What runs inside Redis: one script per call, atomic there. The time is the server's, in microseconds, which a Lua number
 * holds exactly; every number that is stored or returned is written out whole, since Lua would round it to 14 digits.
 *
 * All keys of a call are declared and carry one hash tag. The marker comes first: a script does nothing once it is gone.
 * Everything is read and decided before the first write, so a script that the server refuses has changed nothing.
 *
 * A run's record is one hash: its newest lease, also after its end, and the fence beside it, the highest token that a fenced
 * access has shown (`shown`, by acquisition `shownBy`). A script locks nothing, so the fence needs no key of its own. Neither
 * ever expires. The key is the channel of its changes, too; publishing is a hint, and its failure none of the call's.
 */
import { createHash } from 'node:crypto';

export interface Script {
  readonly source: string;
  readonly sha: string;
}

const MARKER = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {'gone'} end`;

const TIME = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local whole = string.format`;

const LEASE = `
local lease = redis.call('HMGET', KEYS[2], 'worker', 'token', 'acquisition', 'expires', 'ended', 'shown', 'shownBy')
if lease[1] and not (lease[2] and lease[3] and lease[4] and lease[5]) then return {'damaged'} end`;

/** A decision is the primary's: this write changes nothing, and a replica refuses it. */
const ON_PRIMARY = `
local asked = redis.pcall('PERSIST', KEYS[2])
if type(asked) == 'table' and asked.err and string.find(asked.err, 'READONLY', 1, true) then return asked end`;

/** Gives each marker its value unless it has one, and tells which they have. */
export const OPEN = script(`
local values = {}
for i, marker in ipairs(KEYS) do
  redis.call('SET', marker, ARGV[1], 'NX')
  values[i] = redis.call('GET', marker)
end
return values
`);

const ACQUIRE_ONE = `${TIME}
local function acquire(marker, key, runs, expected, worker, acquisition, ttl, reacquire)
  if redis.call('GET', marker) ~= expected then return {'gone'} end
  local lease = redis.call('HMGET', key, 'worker', 'token', 'acquisition', 'expires', 'ended', 'shown', 'shownBy')
  if lease[1] and not (lease[2] and lease[3] and lease[4] and lease[5]) then return {'damaged'} end
  if lease[1] and lease[5] == 'no' and tonumber(lease[4]) > now then
    if lease[1] ~= worker or (reacquire == 'refuse' and lease[3] ~= acquisition) then
      return {'held', lease[1], lease[2], whole('%.0f', lease[4] - now)}
    end
    local expires = whole('%.0f', math.max(lease[4], now + ttl))
    redis.call('HSET', key, 'acquisition', acquisition, 'expires', expires, 'ttl', ttl)
    if lease[6] == lease[2] then redis.call('HSET', key, 'shownBy', acquisition) end
    return {'extended', lease[2], expires}
  end
  local newest = math.max(lease[2] or 0, lease[6] or 0)
  if newest >= 9007199254740991 then return {'exhausted', whole('%.0f', newest)} end
  local token = whole('%.0f', math.max(newest + 1, math.floor(now / 1000)))
  local expires = whole('%.0f', now + ttl)
  if not lease[1] then
    local _, before = string.find(key, '}:lease:', 1, true)
    redis.call('ZADD', runs, 0, string.sub(key, before + 1))
  end
  redis.call('HSET', key, 'worker', worker, 'token', token, 'acquisition', acquisition, 'expires', expires,
    'ended', 'no', 'acquired', whole('%.0f', now), 'ttl', ttl)
  redis.pcall('PUBLISH', key, '')
  return {'granted', token, expires}
end`;

// Keys: marker, lease, runs. Arguments: marker, worker, acquisition, ttl, reacquire. The run's name ends the lease's key.
export const ACQUIRE = script(`${ACQUIRE_ONE}
return acquire(KEYS[1], KEYS[2], KEYS[3], unpack(ARGV))
`);

// The same for each: three keys and five arguments. One that fails does not keep the others from being answered.
export const ACQUIRE_MANY = script(`${ACQUIRE_ONE}
local answers = {}
for i = 1, #KEYS / 3 do
  local key, argument = 3 * i, 5 * i
  local done, answer = pcall(acquire, KEYS[key - 2], KEYS[key - 1], KEYS[key], unpack(ARGV, argument - 4, argument))
  answers[i] = done and answer or {'failed'}
end
return answers
`);

// Keys: marker, then a lease each. Arguments: marker, ttl, then worker, token and acquisition each.
export const RENEW = script(`${MARKER}${TIME}
local function renew(key, worker, token, acquisition)
  local lease = redis.call('HMGET', key, 'worker', 'token', 'acquisition', 'expires', 'ended')
  if lease[1] == worker and lease[2] == token and lease[3] == acquisition and lease[5] == 'no'
    and tonumber(lease[4]) > now then
    local expires = whole('%.0f', math.max(lease[4], now + ARGV[2]))
    redis.call('HSET', key, 'expires', expires, 'ttl', ARGV[2])
    return {'renewed', expires}
  end
  if not lease[1] then return {'lost'} end
  if not (lease[2] and lease[3] and lease[4] and lease[5]) then return {'error', 'the record is damaged'} end
  return {'lost', lease[1], lease[2], lease[3], lease[5]}
end
local results = {}
for i = 2, #KEYS do
  local first = 3 * i - 3
  local done, result = pcall(renew, KEYS[i], ARGV[first], ARGV[first + 1], ARGV[first + 2])
  if not done then result = {'error', type(result) == 'table' and result.err or tostring(result)} end
  results[i - 1] = result
end
return {'done', results}
`);

const RELEASE_ONE = `
local function release(marker, key, expected, worker, acquisition, token)
  if redis.call('GET', marker) ~= expected then return {'gone'} end
  local lease = redis.call('HMGET', key, 'worker', 'acquisition', 'ended', 'token')
  if lease[1] ~= worker or lease[2] ~= acquisition or lease[3] ~= 'no' or (token ~= '' and lease[4] ~= token) then
    return {'kept'}
  end
  redis.call('HSET', key, 'ended', 'released')
  redis.pcall('PUBLISH', key, '')
  return {'released'}
end`;

// Keys: marker, lease. Arguments: marker, worker, acquisition, token or nothing.
export const RELEASE = script(`${RELEASE_ONE}
return release(KEYS[1], KEYS[2], unpack(ARGV))
`);

// The same for each: two keys and four arguments.
export const RELEASE_MANY = script(`${RELEASE_ONE}
local answers = {}
for i = 1, #KEYS / 2 do
  local key, argument = 2 * i, 4 * i
  local done, answer = pcall(release, KEYS[key - 1], KEYS[key], unpack(ARGV, argument - 3, argument))
  answers[i] = done and answer or {'failed'}
end
return answers
`);

// Keys: marker, lease. Arguments: marker, by, reason.
export const REVOKE = script(`${MARKER}${LEASE}${TIME}
if lease[5] ~= 'no' then return {'free'} end
redis.call('HSET', KEYS[2], 'ended', 'revoked', 'by', ARGV[2], 'reason', ARGV[3], 'revoked', whole('%.0f', now))
redis.pcall('PUBLISH', KEYS[2], '')
return {'revoked', lease[1], lease[2], lease[4], redis.call('HGET', KEYS[2], 'ttl')}
`);

// Keys: marker, lease. Arguments: marker.
export const READ = script(`${MARKER}${ON_PRIMARY}${LEASE}${TIME}
if not lease[1] then return {'none', lease[6] or '0'} end
local rest = redis.call('HMGET', KEYS[2], 'acquired', 'ttl', 'by', 'reason', 'revoked')
return {'run', lease[6] or '0', whole('%.0f', now), lease[1], lease[2], lease[4], lease[5],
  rest[1], rest[2], rest[3], rest[4], rest[5]}
`);

// Keys: marker, runs. Arguments: marker, first, last, count.
export const LIST = script(`${MARKER}${ON_PRIMARY}
return {'page', redis.call('ZRANGEBYLEX', KEYS[2], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])}
`);

export function script(source: string): Script {
  return { source, sha: createHash('sha1').update(source).digest('hex') };
}
