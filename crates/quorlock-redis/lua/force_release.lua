-- Frees a name, whichever owner holds it, and wakes who waits.
--
-- KEYS[1]  the claim, as acquire.lua makes it, or that of a read-write lock, with a TTL
-- KEYS[2]  who waits for the fair lock: a list of owners, the first one is next
-- KEYS[3]  a sorted set {waiter: time in ms after which Redisson drops it}
-- KEYS[4]  a sorted set {waiter of ours: time in ms until which it is taken to be alive}
-- ARGV[1]  channel of the plain lock; a waiter of the fair lock listens on <channel>:<waiter>
-- ARGV[2]  channel of the read-write lock
-- ARGV[3]  what the keys of the readers' own leases begin with; then comes reader..':rwlock_timeout:'..n
--
-- Replies  1       freed; where no owner held it, of those in the queue who were dead, or of the first
--          0       no owner held it, and no waiter was in front
-- Errors   WRONGTYPE  the key is something else, and stays
--
-- It must be atomic: what is deleted must be what was looked at. What is neither exactly one owner with a count nor a
-- read-write lock is no lock: an operator who mistypes a name must not delete a program's data. The message goes out
-- before the deletion, because it is no write: a user who may not publish is told so while the claim still stands.
local call = redis.call
local claim, queue, timeouts, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

-- Every loop is bounded: a count in a strange hash can be as large as it likes.
local MOST_FIELDS, MOST_DELETED = 10000, 10000

local fields = call('HLEN', claim)
if fields == 0 then
  -- No owner holds it, but the first in the queue keeps it from all others until it comes, or is known to be dead.
  local head, dropped = first_waiting(queue, timeouts, alive, server_now())
  if not head and not dropped then return 0 end
  if head and not dropped then
    drop_first(queue, timeouts, alive, head)
    head = call('LINDEX', queue, 0)
  end
  if head then keep_theirs(queue, timeouts, alive, head) end
  call('PUBLISH', head and ARGV[1] .. ':' .. head or ARGV[1], '0')
  return 1
end
local mode, beat = unpack(call('HMGET', claim, 'mode', 'beat'))

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
  call('PUBLISH', ARGV[2], '1')
  -- The first lease of every reader, then every second one. Reader after reader, one with a count of billions would use up
  -- the bound, and the leases of all others would stay behind. What is left over has TTLs of its own.
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
  return 1
end

local held = fields == (beat and 2 or 1) and call('HGETALL', claim)
local count = held and held[held[1] == 'beat' and 4 or 2]
if not count or not string.match(count, '^[1-9]%d*$') or #count > 15 then
  return redis.error_reply('WRONGTYPE the key is a hash, but not a lock')
end

local head = first_waiting(queue, timeouts, alive, server_now())
if head then call('PUBLISH', ARGV[1] .. ':' .. head, '0') else call('PUBLISH', ARGV[1], '0') end
call('DEL', claim)
return 1
