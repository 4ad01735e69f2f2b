-- Reading keys of which some may be no locks. One request renews many claims: what is wrong with one of them does not keep the
-- rest from being renewed.

-- The reply of a command that reads, or nil when the key is something else. Any other error concerns the whole call: it is
-- raised by trying again.
local function look(...)
  local reply = redis.pcall(...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  if string.find(reply.err, 'WRONGTYPE', 1, true) then return nil end
  return redis.call(...)
end
