"""Fair locks as scripts. The comments name the rules of docs/src/protocol.md."""

from shared import COUNTER

# The queue: the waiters, until when Redisson keeps each place, and until when a waiter of Quorlock counts as alive.
QUEUE = """
-- F9: mends a queue of which a key was evicted.
local function mend(queue, timeouts, alive, now)
  local has_times, has_alive = redis.call('EXISTS', timeouts) == 1, redis.call('EXISTS', alive) == 1
  if not redis.call('LINDEX', queue, 0) then
    if has_times then redis.call('ZSCORE', timeouts, '') redis.call('DEL', timeouts) end
    if has_alive then redis.call('ZSCORE', alive, '') redis.call('DEL', alive) end
    return
  end
  if has_times and has_alive then return end
  local left, place, waiter = redis.call('PTTL', queue), 0, nil
  while true do
    waiter = redis.call('LINDEX', queue, place)
    if not waiter then break end
    place = place + 1
    if not has_alive and left >= 0 then redis.call('ZADD', alive, text_of(now + left), waiter) end
    if not has_times and redis.call('ZSCORE', alive, waiter) then
      redis.call('ZADD', timeouts, text_of(now + place * 300000), waiter)
    end
  end
  if left >= 0 then
    redis.call('PEXPIRE', timeouts, left)
    redis.call('PEXPIRE', alive, left)
  end
end
-- Until when the place of an owner lasts, and whether that is over: a waiter of Redisson's has no entry in `alive` (F7).
local function place_ends(timeouts, alive, owner, now)
  local ours = tonumber(redis.call('ZSCORE', alive, owner) or nil)
  if ours then return ours, ours < now end
  local theirs = tonumber(redis.call('ZSCORE', timeouts, owner) or nil)
  return theirs or now, theirs and theirs <= now
end
-- F4: how many at the head of the queue are dead, who comes after them, and until when that one's place lasts.
local function look_at_queue(queue, timeouts, alive, now)
  mend(queue, timeouts, alive, now)
  local dead = 0
  while true do
    local first = redis.call('LINDEX', queue, dead)
    if not first then return dead, false, now end
    local ends, is_over = place_ends(timeouts, alive, first, now)
    if not is_over then return dead, first, ends end
    dead = dead + 1
  end
end
local function leave(queue, timeouts, alive, owner)
  redis.call('LREM', queue, 0, owner)
  redis.call('ZREM', timeouts, owner)
  redis.call('ZREM', alive, owner)
end
local function drop(queue, timeouts, alive, dead)
  for _ = 1, dead do leave(queue, timeouts, alive, redis.call('LINDEX', queue, 0)) end
end
-- F3, F7: how long the keys of the queue are kept.
local function keep(queue, timeouts, alive, place)
  local first = redis.call('LINDEX', queue, 0)
  if not first then return end
  if not redis.call('ZSCORE', alive, first) then
    redis.call('PERSIST', queue)
    redis.call('PERSIST', timeouts)
  elseif 0 < place and redis.call('PTTL', queue) < place then
    for _, key in ipairs({queue, timeouts, alive}) do redis.call('PEXPIRE', key, place) end
  end
end
"""

# KEYS: claim, counter, queue, timeouts, alive. ARGV: owner, count, lease, retention, floor, slack, carry, place, channel.
ACQUIRE = COUNTER + QUEUE + """
local claim, counter, queue, timeouts, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, count, lease, retention, floor, slack, carry, place, channel = unpack(ARGV)
place = tonumber(place)
local left = redis.call('PTTL', claim)
local held = redis.call('HMGET', claim, 'mode', owner)                         -- A5: raises WRONGTYPE
if held[1] then return {'other mode', held[1]} end                             -- A4
local mine, is_free, now = held[2], left == -2, server_now()
local dead, first, ends = 0, false, now
if not mine then dead, first, ends = look_at_queue(queue, timeouts, alive, now) end
if not mine and (not is_free or first and first ~= owner) then
  drop(queue, timeouts, alive, dead)                                           -- F4
  local wait = is_free and math.max(ends - now, 0) or left                     -- F2
  if 0 < place then                                                            -- F3
    if not redis.call('ZSCORE', timeouts, owner) then
      local behind = redis.call('RPUSH', queue, owner)
      redis.call('ZADD', timeouts, text_of(now + math.max(left, 0) + behind * 300000), owner)
    end
    local before = tonumber(redis.call('ZSCORE', alive, owner) or 0)
    redis.call('ZADD', alive, text_of(math.max(before, now + place)), owner)
  end
  keep(queue, timeouts, alive, place)
  if is_free and 0 < dead then redis.call('PUBLISH', channel .. ':' .. first, '0') end
  return {0 < place and 'queued' or 'refused', wait}
end
local stored, wrong = read_counter(counter)
if wrong then return redis.error_reply(wrong) end
local token = choose(stored, mine, floor, slack, carry)
write_counter(counter, token, retention)                                       -- T4
redis.call('HSET', claim, owner, count)
if mine then
  extend(claim, lease)                                                         -- A2
  return {'already yours', text_of(token)}
end
local failed = expire(claim, lease)                                            -- A1
if failed then return failed end
drop(queue, timeouts, alive, dead)
leave(queue, timeouts, alive, owner)                                           -- F1
keep(queue, timeouts, alive, 0)
return {'anew', text_of(token)}
"""

# KEYS: claim, queue, timeouts, alive. ARGV: owner, channel. Only for count 0; other counts are released as in a plain lock (F8).
RELEASE = COUNTER + QUEUE + """
local claim, queue, timeouts, alive, owner, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV[2]
local held = redis.call('HMGET', claim, 'mode', owner)                         -- L4: raises WRONGTYPE
local mine = not held[1] and held[2]
local is_free = mine or redis.call('EXISTS', claim) == 0
local now = server_now()
local dead, first = look_at_queue(queue, timeouts, alive, now)
drop(queue, timeouts, alive, dead)                                             -- F4
local waited = redis.call('ZSCORE', timeouts, owner)
leave(queue, timeouts, alive, owner)
local next_one = first
if first == owner then
  local behind
  behind, next_one = look_at_queue(queue, timeouts, alive, now)
  drop(queue, timeouts, alive, behind)                                         -- F6
end
keep(queue, timeouts, alive, 0)
if mine then redis.call('DEL', claim) end
if next_one and is_free and (mine or first == owner or 0 < dead) then          -- F4, F5, F6
  redis.pcall('PUBLISH', channel .. ':' .. next_one, '0')
end
if mine then return 'freed' end
return waited and 'left' or 'not yours'
"""
