-- Frees a name, whoever holds it, and wakes who waits.
--
-- KEYS[1]  the claim, as acquire.lua makes it, or that of a read-write lock, with a TTL
-- KEYS[2]  who waits for the fair lock: a list of owners, the first one is next
-- KEYS[3]  a sorted set {waiter: time in ms after which Redisson drops it}
-- KEYS[4]  a sorted set {waiter of ours: time in ms until which it is taken to be alive}
-- ARGV[1]  channel of the plain lock; a waiter of the fair lock listens on <channel>:<waiter>
-- ARGV[2]  channel of the read-write lock
-- ARGV[3]  what the keys of the readers' own leases begin with; then comes reader..':rwlock_timeout:'..n
--
-- Replies  1       freed
--          0       nobody held it
-- Errors   WRONGTYPE  the key is something else, and stays
--
-- It must be atomic: what is deleted must be what was looked at. What is neither exactly one owner with a count nor a
-- read-write lock is no lock: an operator who mistypes a name must not delete a program's data. The message goes out
-- before the deletion, because it is no write: a user who may not publish is told so while the claim still stands.
local call = redis.call
local claim, queue, timeouts, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

local fields = call('HLEN', claim)
if fields == 0 then return 0 end
local mode, beat = unpack(call('HMGET', claim, 'mode', 'beat'))

if mode == 'read' or mode == 'write' then
  local held = call('HGETALL', claim)
  for i = 1, #held, 2 do
    if held[i] ~= 'mode' and not (string.match(held[i + 1], '^[1-9]%d*$') and #held[i + 1] <= 15) then
      return redis.error_reply('WRONGTYPE the key is a hash, but not a lock')
    end
  end
  call('PUBLISH', ARGV[2], '1')
  for i = 1, #held, 2 do
    for n = 1, tonumber(held[i + 1]) or 0 do
      call('DEL', ARGV[3] .. held[i] .. ':rwlock_timeout:' .. string.format('%.0f', n))
    end
  end
  call('DEL', claim)
  return 1
end

local held = fields == (beat and 2 or 1) and call('HGETALL', claim)
local count = held and held[held[1] == 'beat' and 4 or 2]
if not count or not string.match(count, '^[1-9]%d*$') or #count > 15 then
  return redis.error_reply('WRONGTYPE the key is a hash, but not a lock')
end

local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local head = call('LINDEX', queue, 0)
while head do
  local theirs, ours = call('ZSCORE', timeouts, head), call('ZSCORE', alive, head)
  local last = tonumber(ours or theirs or nil)
  if not (last and (last < now or not ours and last <= now)) then break end
  call('LPOP', queue)
  call('ZREM', timeouts, head)
  call('ZREM', alive, head)
  head = call('LINDEX', queue, 0)
end
if head then call('PUBLISH', ARGV[1] .. ':' .. head, '0') else call('PUBLISH', ARGV[1], '0') end
call('DEL', claim)
return 1
