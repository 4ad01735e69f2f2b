-- Lowers the count of the owner's claim, or ends it and wakes waiters.
--
-- KEYS[1]  the claim, as acquire.lua makes it
-- ARGV[1]  owner
-- ARGV[2]  hold count from now on; 0 frees the name
-- ARGV[3]  channel of the name
--
-- Replies  1  freed, and no client was listening
--          4  freed, and one client was listening; 5: two, and so on
--          2  kept at the stated count
--          0  not the owner's: it never was, has expired, or was released before
-- Errors   WRONGTYPE  the key has another type
--
-- The script must be atomic: between a look and the deletion, A's claim could expire, B be granted the name, and B's
-- claim be deleted. The message is published before the deletion, because it is not a write: if the user may not
-- publish, the error comes while nothing has been done. No client can act on the message before the script ends.
local held = redis.call('HMGET', KEYS[1], 'mode', ARGV[1])
if held[1] or not held[2] then return 0 end
if ARGV[2] ~= '0' then
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
  return 2
end
local told = redis.call('PUBLISH', ARGV[3], '0')
redis.call('DEL', KEYS[1])
return told == 0 and 1 or told + 3
