-- Frees a name, whichever owner holds it, and wakes waiters.
--
-- KEYS[1]  the claim, as acquire.lua makes it, or that of a read-write lock, with a TTL
-- KEYS[2]  the queue of the fair lock: a list of waiters, the first one is next
-- KEYS[3]  a sorted set {waiter: time in ms after which Redisson drops it}
-- KEYS[4]  a sorted set {waiter of ours: time in ms until which it counts as alive}
-- ARGV[1]  channel of the plain lock; a waiter of the fair lock listens on <channel>:<waiter>
-- ARGV[2]  channel of the read-write lock
-- ARGV[3]  prefix of the keys of the readers' leases; the rest is reader..':rwlock_timeout:'..n
--
-- Replies  1       freed; if no owner held the name, dead waiters or the first one were removed from the queue
--          {1, error}  the same, and the server refused to publish that
--          0       no owner held it, and the queue was empty
-- Errors   WRONGTYPE  the key is no lock, and stays
--
-- The script must be atomic: it deletes exactly what it has examined. A key that is neither one owner with a count nor
-- a read-write lock is no lock: an operator who mistypes a name must not delete a program's data. The deletion comes
-- before the message, and an error of the message does not undo it.
local call = redis.call
local claim, queue, timeouts, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

-- Every loop is bounded: a count in another program's hash can be arbitrarily large.
local MOST_FIELDS, MOST_DELETED = 10000, 10000

-- Returns the reply when the name is free.
local function freed(channel, message)
  local told = redis.pcall('PUBLISH', channel, message)
  return type(told) == 'table' and {1, told} or 1
end

local fields = call('HLEN', claim)
if fields == 0 then
  -- No owner holds the name, but the first waiter blocks it for all others until it acquires it or counts as dead.
  local now = server_now()
  local head, dropped = first_waiting(queue, timeouts, alive, now)
  if not head and not dropped then return 0 end
  if head and not dropped then
    drop_first(queue, timeouts, alive, head)
    head = first_waiting(queue, timeouts, alive, now)
  end
  if head then keep_theirs(queue, timeouts, alive, head) end
  return freed(head and ARGV[1] .. ':' .. head or ARGV[1], '0')
end
local mode = call('HMGET', claim, 'mode')[1]

if mode == 'read' or mode == 'write' then
  if MOST_FIELDS < fields then
    return redis.error_reply('WRONGTYPE the key is a hash of too many fields for a lock')
  end
  local held = call('HGETALL', claim)
  for i = 1, #held, 2 do
    if held[i] ~= 'mode' and not (string.match(held[i + 1], '^[1-9]%d*$') and #held[i + 1] <= 15) then
      return redis.error_reply('WRONGTYPE the key is a hash, but not a lock')
    end
  end
  -- Deletes the first lease of every reader, then every second one, and so on. In the order of readers, one with a
  -- count of billions would use up the bound, and the leases of all others would stay. Leases that are left expire by
  -- their TTLs.
  local deleted, nth, is_left = 0, 1, true
  while is_left do
    is_left = false
    for i = 1, #held, 2 do
      if held[i] ~= 'mode' and nth <= tonumber(held[i + 1]) and deleted < MOST_DELETED then
        call('DEL', ARGV[3] .. held[i] .. ':rwlock_timeout:' .. nth)
        deleted, is_left = deleted + 1, true
      end
    end
    nth = nth + 1
  end
  call('DEL', claim)
  return freed(ARGV[2], '1')
end

local held = fields == 1 and call('HGETALL', claim)
local count = held and (string.match(held[2], '^([1-9]%d*)$') or string.match(held[2], '^([1-9]%d*) %d+ %d+$'))
if not count or #count > 15 then
  return redis.error_reply('WRONGTYPE the key is a hash, but not a lock')
end

local head = first_waiting(queue, timeouts, alive, server_now())
call('DEL', claim)
return freed(head and ARGV[1] .. ':' .. head or ARGV[1], '0')
