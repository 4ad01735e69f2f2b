-- Reads keys that may not be locks. One request renews many claims, and an error with one of them does not prevent
-- the renewal of the others.

-- Returns the reply of a reading command, or nil if the key has another type. Any other error concerns the whole
-- call: the command is executed again, to raise it.
local function look(...)
  local reply = redis.pcall(...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if string.find(reply.err, 'WRONGTYPE', 1, true) then return nil end
  return redis.call(...)
end
