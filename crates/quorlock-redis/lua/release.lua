-- Lowers the count of the owner's claim, or ends it and wakes a waiter.
--
-- KEYS[1]  the claim, as acquire.lua makes it
-- ARGV[1]  owner
-- ARGV[2]  hold count from now on; 0 frees the name
-- ARGV[3]  channel of the name
--
-- Replies  1  freed, and no client was listening
--          4  freed, and one client was told; 5: two, and so on
--          2  kept at the stated count
--          0  not the owner's: it never was, has expired, or was released before
-- Errors   WRONGTYPE  the key is something else
--
-- It must be atomic: between looking and deleting, the claim could expire and become another's. The message goes out
-- before the deletion, because it is no write: a user who may not publish is told so while nothing has been done.
-- No client can act on it earlier than the script ends.
local held = redis.call('HMGET', KEYS[1], 'mode', ARGV[1])
if held[1] or not held[2] then return 0 end
if ARGV[2] ~= '0' then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  return 2
end
local told = redis.call('PUBLISH', ARGV[3], '0')
redis.call('DEL', KEYS[1])
return told == 0 and 1 or told + 3
