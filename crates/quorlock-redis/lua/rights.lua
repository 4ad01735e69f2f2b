-- Tells which commands the user may use on which keys and channels; executes none of them.
--
-- ARGV     for each command: the number of its words, and its words
--
-- Replies  an array with one integer for each command, in order:
--          0  allowed
--          1  the server has no such command: it was renamed or disabled
--          2  the user may not use it, or not on this key or channel
--          nil  the server cannot tell: it is older than Redis 7, and has every command
--
-- The commands are complete: Redis 7.0 reads beyond the words of a command that lacks its key.
local replies, at, is_told = {}, 1, redis.acl_check_cmd ~= nil
while at <= #ARGV do
  local words = {unpack(ARGV, at + 1, at + ARGV[at])}
  at = at + 1 + ARGV[at]
  local reply = 0
  if redis.acl_check_cmd then
    local ok, may = pcall(redis.acl_check_cmd, unpack(words))
    if not ok then reply = 1 elseif not may then reply = 2 end
  else
    -- A command without its arguments is refused before it is executed. Those without any are harmless.
    local refusal = redis.pcall(words[1])
    if type(refusal) == 'table' and refusal.err and string.find(refusal.err, 'nknown Redis command', 1, true) then
      reply, is_told = 1, true
    end
  end
  replies[#replies + 1] = reply
end
return is_told and replies or false
