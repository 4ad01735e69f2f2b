-- Publishes on a cluster both to the listeners of a channel on all nodes and to those on its shard. It precedes a
-- script that publishes.
--
-- Redisson listens in one of the two ways, depending on its settings and the version of the server, and does not
-- receive messages sent the other way. Our clients listen in both, and treat the second of two messages in a row as a
-- copy. A server before Redis 7 does not know SPUBLISH, and a user may have no permission for it. The release succeeds
-- in either case. Scripts publish by pcall only, because a refused message does not undo a release.
local server = redis
local redis = {
  -- The arguments are passed on as they are: a nil for an argument that was not given is an error.
  call = server.call,
  pcall = function(verb, ...)
    local answer = server.pcall(verb, ...)
    if verb == 'PUBLISH' then
      local told = server.pcall('SPUBLISH', ...)
      -- A client that listens in both ways is one listener.
      if type(told) == 'number' and type(answer) == 'number' and answer < told then return told end
    end
    return answer
  end,
  error_reply = server.error_reply,
}
