-- Passes a claim on to the owner of an acquire, in one step with it. The acquire's own script precedes this one, as the function
-- execute(), and finds a claim that its owner already has.
--
-- KEYS[1]         the claim: a hash, as the acquire's script describes it
-- KEYS[2]         the token counter of the name: a string
-- ARGV[1]         the field of the owner before; it ends with ':write' for a writer, as the next one's does
-- ARGV[2] to [4]  floor and slack of a new token, and how long an unused counter is kept, as the acquire's script has them
-- ARGV, the rest  the arguments of the acquire: the owner's field, its hold count, and so on
--
-- Replies         those of the acquire's script: granted anew if the claim has passed on now
--                 {0, left}        refused: neither owner has the claim. Remaining TTL of the claim that is there in ms, -1 if
--                                  it has no TTL, 0 if there is none
-- Errors          those of the acquire's script
--
-- The script must be atomic: of two clients that continue one hold, the second one must not find the claim any more. A request
-- that is executed twice finds its owner's claim. The next owner's field comes before the old one is deleted, because a hash without
-- fields does not exist, and would lose its TTL. The first command of a write changes nothing, and needs a right that no plain lock
-- needs: if it is refused, nothing has changed. After any other error the claim is the owner's before.
local call, claim, counter = redis.call, KEYS[1], KEYS[2]
local before, floor, slack, kept = unpack(ARGV, 1, 4)
for _ = 1, 4 do table.remove(ARGV, 1) end
local owner = ARGV[1]

local held = call('HMGET', claim, 'mode', owner, before)
local mode = string.find(before, ':write', 1, true) and 'write' or false
if held[1] == mode and held[2] then return execute() end

local function refused()
  local left = call('PTTL', claim)
  return {0, left == -2 and 0 or left}
end

if held[1] ~= mode or not held[3] then return refused() end
local stored = call('GET', counter)
if stored then
  stored = counted(stored)
  if not stored then return redis.error_reply(NO_COUNTER) end
end
local token = next_token(stored, floor + 0, slack, false)
call('HDEL', claim, owner)
call('HSET', claim, owner, ARGV[2])
call('HDEL', claim, before)
local ok, reply = pcall(function()
  store_token(call, counter, string.format('%.0f', token), kept)
  return execute()
end)
if not ok then reply = type(reply) == 'table' and reply or {err = tostring(reply)} end
if type(reply) == 'table' and reply.err then
  call('HSET', claim, before, held[3])
  call('HDEL', claim, owner)
  return reply
end
-- The writer before has let readers in, and has stopped reading, but the release of one may be lost.
if mode then
  local fields = call('HSCAN', claim, '0')[2]
  for i = 1, #fields, 2 do
    if fields[i] ~= 'mode' and fields[i] ~= owner then call('HDEL', claim, fields[i]) end
  end
end
return type(reply) == 'table' and reply[1] == 2 and reply[2] or reply
