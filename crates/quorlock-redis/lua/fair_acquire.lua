-- Records a claim of a fair lock if the name is free and no live waiter is ahead of the owner; otherwise keeps a place.
--
-- KEYS[1]  the claim: a hash {owner: count} with a TTL, as Redisson keeps it
-- KEYS[2]  the token counter of the name: a string
-- KEYS[3]  the queue: a list of waiters, the first one is next
-- KEYS[4]  a sorted set {waiter: time in ms after which Redisson drops it}
-- KEYS[5]  a sorted set {waiter of ours: time in ms until which it counts as alive}
-- ARGV[1]  owner
-- ARGV[2]  hold count from now on
-- ARGV[3]  lease in ms
-- ARGV[4]  how long an unused token counter is kept in ms; 0 = forever
-- ARGV[5]  how long a place is kept for a waiter that does not ask again in ms; 0 = the owner wants no place
-- ARGV[6]  channel of the name; a waiter listens on <channel>:<waiter>
-- ARGV[7]  with ARGV[8]: the floor of a new token; without: the token that an existing hold carries along
-- ARGV[8]  how far the floor may be from this server's clock in ms; empty = none
--
-- Replies  integer     granted anew: the token
--          {2, token}  granted, the owner already had the claim
--          {3, ms}     waiters are ahead, and the owner has a place: remaining TTL of the claim in the way (-1 if it has
--                      no TTL), or the time that the first waiter has left to acquire the name
--          {0, ms}     the same without a place
--          string      refused: the key is a lock of this other mode
-- Errors   WRONGTYPE   one of the keys has another type
--
-- The script must be atomic: between a look and a write, another owner could be granted the name or come to the head
-- of the queue. Times are this server's, never a client's. What is written to KEYS[4] is for Redisson's clients
-- alone: they allow 5 minutes (their default) for every waiter up to this place, and each grant to a waiter subtracts
-- 5 minutes. Numbers are formatted with '%.0f' because tostring() keeps only 14 digits.
local call = redis.call
local claim, counter, queue, timeouts, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, count, lease, keep = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[5])

local left = call('PTTL', claim)
local yours = false
if left ~= -2 then
  local held = call('HMGET', claim, 'mode', owner)
  if held[1] then return held[1] end
  yours = held[2]
end

local stored = call('GET', counter)
if stored then
  stored = counted(stored)
  if not stored then return redis.error_reply(NO_COUNTER) end
end

local now = server_now()
local head, dropped, last
if not yours then head, dropped, last = first_waiting(queue, timeouts, alive, now) end

-- A queue that begins with one of our waiters expires when the last of them is dead. One that begins with Redisson's
-- has no TTL. Only a request that waits extends the queue: an owner that was granted the name has left it.
local function settle(waits)
  local first = call('LINDEX', queue, 0)
  if not first then return end
  if not keep_theirs(queue, timeouts, alive, first) and 0 < keep then
    local ends = call('PTTL', queue)
    if ends == -1 or waits and ends < keep then
      call('PEXPIRE', queue, keep)
      call('PEXPIRE', timeouts, keep)
      call('PEXPIRE', alive, keep)
    end
  end
end

-- Gives the owner a place, or keeps the one that it has. Redisson drops a waiter from KEYS[3] and KEYS[4], and does not
-- know KEYS[5]. So KEYS[4] decides whether it has a place.
local had_place
local function keep_place()
  had_place = call('ZSCORE', timeouts, owner)
  if not had_place then
    local place = call('RPUSH', queue, owner)
    local drop = now + math.max(left, 0) + place * REDISSON_WAIT
    call('ZADD', timeouts, string.format('%.0f', drop), owner)
  end
  local before = tonumber(call('ZSCORE', alive, owner) or 0)
  call('ZADD', alive, string.format('%.0f', math.max(before, now + keep)), owner)
  settle(true)
end

local free = left == -2
if not yours and not (free and (not head or head == owner)) then
  local reply = {0, left}
  if free then reply[2] = last and last - now or 0 end
  if 0 < keep then
    local kept, problem = pcall(keep_place)
    if not kept then
      -- A place without a TTL would block the name for ever. If this user may not use one of the commands, a queue that
      -- began with this request is deleted again, and so is a new place in another one.
      if not head then
        call('DEL', queue, timeouts, alive)
      elseif not had_place then
        redis.pcall('LREM', queue, 0, owner)
        redis.pcall('ZREM', timeouts, owner)
        redis.pcall('ZREM', alive, owner)
      end
      return {err = type(problem) == 'table' and problem.err or tostring(problem)}
    end
    reply[1] = 3
  else
    settle(true)
  end
  if free and dropped then
    head = head or owner
    -- The place in the queue stands even if this user may not wake the waiter.
    redis.pcall('PUBLISH', ARGV[6] .. ':' .. head, '0')
  end
  return reply
end

local token = next_token(stored, tonumber(ARGV[7]), ARGV[8], yours, now)

-- A re-entry extends the TTL first. A server at its memory limit refuses only the first write of a script, and it
-- allows PEXPIRE: if HSET came first, the owner could not extend a claim that it still has. A claim without TTL keeps
-- none.
if yours and left ~= -1 and left < tonumber(lease) then call('PEXPIRE', claim, lease) end
store_token(call, counter, string.format('%.0f', token), ARGV[4])
-- A plain claim may have a claim version behind its count.
local value = count .. (yours and string.match(yours, ' .*') or '')
if yours ~= value then call('HSET', claim, owner, value) end
if yours then return {2, token} end

-- A claim without TTL would outlive its owner. If this user may not use PEXPIRE, the claim is deleted again.
local expiry = redis.pcall('PEXPIRE', claim, lease)
if type(expiry) == 'table' then
  call('DEL', claim)
  return expiry
end
if head then
  drop_first(queue, timeouts, alive, owner)
  settle(false)
end
return token
