-- Lowers the count of the owner's claim, or ends it and wakes waiters.
--
-- KEYS[1]  the claim, as acquire.lua makes it
-- ARGV[1]  owner
-- ARGV[2]  hold count from now on; 0 frees the name
-- ARGV[3]  channel of the name
--
-- Replies  1  freed, and no client was listening
--          4  freed, and one client was listening; 5: two, and so on
--          {1, error}  freed, and the server refused to publish that
--          2  kept at the stated count
--          0  not the owner's: it never was, has expired, or was released before
-- Errors   WRONGTYPE  the key has another type
--
-- The script must be atomic: between a look and the deletion, A's claim could expire, B be granted the name, and B's
-- claim be deleted. The deletion comes first, and an error of the message does not undo it: a user who may not publish
-- would otherwise hold every name for a whole lease after its use.
local held = redis.call('HMGET', KEYS[1], 'mode', ARGV[1])
if held[1] or not held[2] then return 0 end
if ARGV[2] ~= '0' then
  -- The claim version behind the count stays.
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. (string.match(held[2], ' .*') or ''))
  return 2
end
redis.call('DEL', KEYS[1])
local told = redis.pcall('PUBLISH', ARGV[3], '0')
if type(told) == 'table' then return {1, told} end
return told == 0 and 1 or told + 3
