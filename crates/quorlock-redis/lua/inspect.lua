-- Describes what is stored under a name; changes nothing.
--
-- KEYS[1]  the claim, as acquire.lua makes it, or that of a read-write lock, with a TTL
-- KEYS[2]  the token counter of the name: a string
-- KEYS[3]  the queue of the fair lock: a list of waiters
-- ARGV[1]  prefix of the keys of the readers' leases; the rest is reader..':rwlock_timeout:'..n
--
-- Replies  {token, waiting}                             nothing: the name is free
--          {token, waiting, ttl, owner, count}          a plain or a fair lock; ttl in ms, -1 if it has none
--          {token, waiting, ttl, writer, count, reads}  a read-write lock; writer is nil if no owner writes, reads is the
--                                                       number of readers whose leases have not run out
--          {token, waiting, ttl}                        a key that is no lock
--          token is nil if none is stored, waiting is the number of waiters of the fair lock
-- Errors   WRONGTYPE  the token counter or the queue has another type
--
-- The script must be atomic: between two looks, the claim could expire and another owner's could replace it. It reads
-- a whole hash only when that has few fields, since a large hash that is no lock would block the server.
local call, claim = redis.call, KEYS[1]
local MOST_FIELDS = 10000

local token = call('GET', KEYS[2])
if token then
  token = counted(token)
  if not token then return redis.error_reply(NO_COUNTER) end
end
local waiting = call('LLEN', KEYS[3])

local left = call('PTTL', claim)
if left == -2 then return {token, waiting} end

local fields = redis.pcall('HLEN', claim)
if type(fields) == 'table' then
  if string.find(fields.err, 'WRONGTYPE', 1, true) then return {token, waiting, left} end
  return fields
end
local mode = call('HMGET', claim, 'mode')[1]
local is_shared = mode == 'read' or mode == 'write'
if is_shared and fields > MOST_FIELDS or not is_shared and fields ~= 1 then
  return {token, waiting, left}
end
local held = call('HGETALL', claim)

-- A count is a whole number of at least 1 that fits into the reply.
local function count(text)
  return string.match(text, '^[1-9]%d*$') and #text <= 15 and tonumber(text)
end

if not is_shared then
  -- With a margin the claim version is behind the count.
  local holds = count(string.match(held[2], '^(%d+) %d+ %d+$') or held[2])
  if not holds then return {token, waiting, left} end
  return {token, waiting, left, held[1], holds}
end

-- A reader of more than 1,000 holds counts as alive. So do all readers after the first 10,000 lookups of keys.
local looks = 10000
local function lives(reader, holds)
  if 1000 < holds then return true end
  for n = 1, holds do
    looks = looks - 1
    if looks < 0 or call('EXISTS', ARGV[1] .. reader .. ':rwlock_timeout:' .. n) == 1 then return true end
  end
  return false
end

local writer, writes, reads = false, 0, 0
for i = 1, #held, 2 do
  local owner, holds = held[i], count(held[i + 1])
  local name = string.match(owner, '^(.*):write$')
  if name and holds then
    writer, writes = name, holds
  elseif owner ~= 'mode' and not holds then
    return {token, waiting, left}
  elseif holds then
    if lives(owner, holds) then reads = reads + 1 end
  end
end
return {token, waiting, left, writer, writes, reads}
