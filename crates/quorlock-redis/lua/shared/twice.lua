-- Publishes on a cluster to those who listen to a channel on all of it, and to those who listen on its shard. It comes before a script that
-- publishes.
--
-- Redisson listens in one of the two ways, by its settings and by the version of the server, and hears nothing of the other. Clients of ours
-- listen in both, and take the second of two messages in a row for the same. A server before Redis 7 does not know SPUBLISH, and a user may
-- have no right to it: that is no reason to keep a lock.
local server = redis
local redis = {
  -- The rest as it comes: a nil for an argument that was not given is an error.
  call = function(verb, ...)
    local answer = server.call(verb, ...)
    if verb == 'PUBLISH' then
      local told = server.pcall('SPUBLISH', ...)
      -- Who listens in both ways is one listener.
      if type(told) == 'number' and answer < told then return told end
    end
    return answer
  end,
  pcall = server.pcall,
  error_reply = server.error_reply,
}
