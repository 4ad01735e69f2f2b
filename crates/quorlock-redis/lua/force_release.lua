-- Frees a name, whoever holds it, and wakes a waiter.
--
-- KEYS[1]  the claim: a hash {owner: count} with a TTL
-- ARGV[1]  channel of the name
--
-- Replies  1       freed
--          0       nobody held it
--          string  a lock of this other mode stands there, and stays
-- Errors   WRONGTYPE  the key is something else, and stays
--
-- It must be atomic: what is deleted must be what was looked at. What is not exactly one owner with a count is no
-- plain lock: an operator who mistypes a name must not delete a program's data. The message goes out before the
-- deletion, because it is no write: a user who may not publish is told so while nothing has been done.
local call, claim = redis.call, KEYS[1]

local fields = call('HLEN', claim)
if fields == 0 then return 0 end
local mode = call('HGET', claim, 'mode')
if mode == 'read' or mode == 'write' then return mode end

local held = fields == 1 and call('HGETALL', claim)
if not held or not string.match(held[2], '^[1-9]%d*$') or #held[2] > 15 then
  return redis.error_reply('WRONGTYPE the key is a hash, but not a lock')
end
call('PUBLISH', ARGV[1], '0')
call('DEL', claim)
return 1
