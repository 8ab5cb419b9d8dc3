/**
 * What runs inside Redis: one script per call, atomic there. The time is the server's, in microseconds, which a Lua number
 * holds exactly; every number that is stored or returned is written out whole, since Lua would round it to 14 digits.
 *
 * All keys of a call are declared and carry one hash tag. The marker comes first: a script does nothing once it is gone.
 * Everything is read and decided before the first write, so a script that the server refuses has changed nothing.
 */
import { createHash } from 'node:crypto';

export interface Script {
  readonly source: string;
  readonly sha: string;
}

const HEAD = `
local function whole(number) return string.format('%.0f', number) end
local function now()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end
local function get(key)
  return redis.call('HMGET', key, 'worker', 'token', 'acquisition', 'expires', 'ended')
end
local function isDamaged(lease)
  if not (lease[1] or lease[2] or lease[3] or lease[4] or lease[5]) then return false end
  return not (lease[1] and tonumber(lease[2]) and lease[3] and tonumber(lease[4]) and lease[5])
end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {'gone'} end
`;

/** A decision is the primary's: this write changes nothing, and a replica refuses it. */
const ON_PRIMARY = `
local asked = redis.pcall('PERSIST', KEYS[2])
if type(asked) == 'table' and asked.err and string.find(asked.err, 'READONLY', 1, true) then return asked end
`;

/** Gives each marker its value unless it has one, and tells which they have. */
export const OPEN = script(`
local values = {}
for i, marker in ipairs(KEYS) do
  redis.call('SET', marker, ARGV[1], 'NX')
  values[i] = redis.call('GET', marker)
end
return values
`);

// Keys: marker, lease, fence, runs. Arguments: marker, worker, acquisition, ttl, reacquire, run, channel.
export const ACQUIRE = script(`${HEAD}
local lease = get(KEYS[2])
local fence = redis.call('HMGET', KEYS[3], 'token', 'acquisition')
if isDamaged(lease) then return {'damaged'} end
local at = now()
if lease[1] and lease[5] == 'no' and tonumber(lease[4]) > at then
  if lease[1] ~= ARGV[2] or (ARGV[5] == 'refuse' and lease[3] ~= ARGV[3]) then
    return {'held', lease[1], lease[2], whole(tonumber(lease[4]) - at)}
  end
  local expires = whole(math.max(tonumber(lease[4]), at + ARGV[4]))
  redis.call('HSET', KEYS[2], 'acquisition', ARGV[3], 'expires', expires, 'ttl', ARGV[4])
  if fence[1] == lease[2] and fence[2] ~= ARGV[3] then redis.call('HSET', KEYS[3], 'acquisition', ARGV[3]) end
  return {'extended', lease[2], expires}
end
local newest = math.max(tonumber(lease[2] or 0), tonumber(fence[1] or 0))
if newest >= 9007199254740991 then return {'exhausted', whole(newest)} end
local token = whole(math.max(newest + 1, math.floor(at / 1000)))
local expires = whole(at + ARGV[4])
if not lease[1] then redis.call('ZADD', KEYS[4], 0, ARGV[6]) end
redis.call('HSET', KEYS[2], 'worker', ARGV[2], 'token', token, 'acquisition', ARGV[3], 'expires', expires,
  'ended', 'no', 'acquired', whole(at), 'ttl', ARGV[4])
redis.pcall('PUBLISH', ARGV[7], ARGV[6])
return {'granted', token, expires}
`);

// Keys: marker, then a lease each. Arguments: marker, ttl, then worker, token and acquisition each.
export const RENEW = script(`${HEAD}
local at = now()
local function renew(key, worker, token, acquisition)
  local lease = get(key)
  if isDamaged(lease) then return {'error', 'the record is damaged'} end
  if lease[1] == worker and lease[2] == token and lease[3] == acquisition and lease[5] == 'no'
    and tonumber(lease[4]) > at then
    local expires = whole(math.max(tonumber(lease[4]), at + ARGV[2]))
    redis.call('HSET', key, 'expires', expires, 'ttl', ARGV[2])
    return {'renewed', expires}
  end
  if not lease[1] then return {'lost'} end
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

// Keys: marker, lease. Arguments: marker, worker, acquisition, token or nothing, run, channel.
export const RELEASE = script(`${HEAD}
local lease = get(KEYS[2])
if lease[1] ~= ARGV[2] or lease[3] ~= ARGV[3] or lease[5] ~= 'no' or (ARGV[4] ~= '' and lease[2] ~= ARGV[4]) then
  return {'kept'}
end
redis.call('HSET', KEYS[2], 'ended', 'released')
redis.pcall('PUBLISH', ARGV[6], ARGV[5])
return {'released'}
`);

// Keys: marker, lease. Arguments: marker, by, reason, run, channel.
export const REVOKE = script(`${HEAD}
local lease = get(KEYS[2])
if isDamaged(lease) then return {'damaged'} end
if lease[5] ~= 'no' then return {'free'} end
redis.call('HSET', KEYS[2], 'ended', 'revoked', 'by', ARGV[2], 'reason', ARGV[3], 'revoked', whole(now()))
redis.pcall('PUBLISH', ARGV[5], ARGV[4])
return {'revoked', lease[1], lease[2], lease[4], redis.call('HGET', KEYS[2], 'ttl')}
`);

// Keys: marker, lease, fence. Arguments: marker.
export const READ = script(`${HEAD}${ON_PRIMARY}
local lease = get(KEYS[2])
local fence = redis.call('HGET', KEYS[3], 'token') or '0'
if isDamaged(lease) then return {'damaged'} end
if not lease[1] then return {'none', fence} end
local rest = redis.call('HMGET', KEYS[2], 'acquired', 'ttl', 'by', 'reason', 'revoked')
return {'run', fence, whole(now()), lease[1], lease[2], lease[4], lease[5], rest[1], rest[2], rest[3], rest[4], rest[5]}
`);

// Keys: marker, runs. Arguments: marker, first, last, count.
export const LIST = script(`${HEAD}${ON_PRIMARY}
return {'page', redis.call('ZRANGEBYLEX', KEYS[2], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])}
`);

function script(source: string): Script {
  return { source, sha: createHash('sha1').update(source).digest('hex') };
}
