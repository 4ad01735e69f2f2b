-- Passes a claim on to the owner of an acquire, in one step with it. The acquire's own script precedes this one, as the function
-- execute(), and finds a claim that its owner already has.
--
-- KEYS[1]        the claim: a hash, as the acquire's script describes it
-- ARGV[1]        the field of the owner before; it ends with ':write' for a writer, as the next one does
-- ARGV, the rest the arguments of the acquire: the owner's field, its hold count, and so on
--
-- Replies        those of the acquire's script
--                {0, left}  refused: neither owner has the claim. Remaining TTL of the claim that is there in ms, -1 if it
--                           has no TTL, 0 if there is none
-- Errors         those of the acquire's script
--
-- The script must be atomic: of two clients that continue one claim, the second one must not find it any more. A request that
-- is executed twice finds its owner's claim. If the acquire fails, the claim is the owner's before again, so an error means that
-- nothing has changed, except that the claim has no version: that of the owner before goes with its field.
local call, claim, before, owner = redis.call, KEYS[1], table.remove(ARGV, 1), ARGV[1]
local held = call('HMGET', claim, 'mode', before, owner)
local mode = string.find(before, ':write', 1, true) and 'write'
local left = call('PTTL', claim)
if held[1] ~= mode or not (held[2] or held[3]) then return {0, left == -2 and 0 or left} end
if not held[2] then return execute() end
-- A writer that reads, too, would go on reading beside the next writer.
if mode and 4 < #call('HSCAN', claim, '0')[2] then return {0, left} end

-- A hash whose only field is deleted does not exist any more. A writer may have other fields, and needs HDEL anyway.
local function pass_on(from, to, count)
  if mode then
    call('HSET', claim, to, count)
    call('HDEL', claim, from)
  else
    call('DEL', claim)
    call('HSET', claim, to, count)
    if left ~= -1 then call('PEXPIRE', claim, math.max(left, 1)) end
  end
end

pass_on(before, owner, ARGV[2])
local ok, reply = pcall(execute)
if not ok then reply = type(reply) == 'table' and reply or {err = tostring(reply)} end
if type(reply) == 'table' and reply.err then pass_on(owner, before, held[2]) end
return reply
