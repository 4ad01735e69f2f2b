-- Lowers the count of a claim of a fair lock, or ends it and wakes the next waiter; or ends the owner's wait.
--
-- KEYS[1]  the claim: a hash {owner: count} with a TTL
-- KEYS[2]  the queue: a list of waiters, the first one is next
-- KEYS[3]  a sorted set {waiter: time in ms after which Redisson drops it}
-- KEYS[4]  a sorted set {waiter of ours: time in ms until which it counts as alive}
-- ARGV[1]  owner
-- ARGV[2]  hold count from now on; 0 frees the name
-- ARGV[3]  channel of the name; a waiter listens on <channel>:<waiter>
--
-- Replies  1  freed
--          2  kept at the stated count
--          3  the owner had no claim but a place in the queue, and has left it
--          {1, error}, {3, error}, {0, error}  the same, and the server refused to wake the next waiter
--          0  the owner had neither
-- Errors   WRONGTYPE  one of the keys has another type
--
-- The script must be atomic: between a look and the deletion, the claim could expire, and another owner's would be
-- deleted. It wakes one waiter, however many there are. A waiter that leaves the head of the queue while the name is
-- free passes the turn on: the message that the name is free may have been sent to this waiter alone. The deletion
-- comes before the message, and an error of the message does not undo it.
local call = redis.call
local claim, queue, timeouts, alive, owner = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1]

local held = call('HMGET', claim, 'mode', owner)
local yours = not held[1] and held[2]
if ARGV[2] ~= '0' then
  if not yours then return 0 end
  -- A plain claim may have a claim version behind its count.
  call('HSET', claim, owner, ARGV[2] .. (string.match(yours, ' .*') or ''))
  return 2
end

local now = server_now()
local head, dropped = first_waiting(queue, timeouts, alive, now)
local first = head == owner
local waited = call('ZSCORE', timeouts, owner)
if waited then
  call('LREM', queue, 0, owner)
  call('ZREM', timeouts, owner)
end
call('ZREM', alive, owner)

local free = yours or call('EXISTS', claim) == 0
if first then head = first_waiting(queue, timeouts, alive, now) end
if head then keep_theirs(queue, timeouts, alive, head) end
if yours then call('DEL', claim) end
local reply = yours and 1 or waited and 3 or 0
if head and free and (yours or first or dropped) then
  local told = redis.pcall('PUBLISH', ARGV[3] .. ':' .. head, '0')
  if type(told) == 'table' then return {reply, told} end
end
return reply
