-- Checks which process the server is, in one step with a request. The request's own script precedes this one, as the
-- function execute(); a probe has an empty one.
--
-- KEYS, last       the marker: a string "<first 13 digits of master_replid>:<nonce>:<longest lease in ms>:<unripe or ripe>"
-- ARGV, last six   the ripe marker of the process that the client trusts, or empty
--                  'keep' if restarts keep every write and no other server takes over this address, 'keep:<nonce>' if the
--                  client also knows the nonce that it trusted last, or empty
--                  act: 'look'; or 'mark' = write an unripe marker if this process has none (with 'keep', the script may
--                  inherit the ripe marker that it finds); or 'fresh' = the same, but a ripe one if there is no marker;
--                  or 'ripen' = make the marker of this process with this nonce ripe
--                  nonce
--                  lease of the request in ms
--                  longest lease of any client of the deployment in ms
--
-- Replies  that of execute(), if the server is the trusted process; otherwise
--          {reply of execute(), first 52 bits of master_replid, state, nonce}
--          state 0 = no marker, 1 = marker of another process, 2 = of this process and unripe, 3 = of this process and ripe;
--          nonce is 0 unless the marker is of this process
-- Errors   LONGESTLEASE  the lease is longer, or the marker of this process states another longest lease
--          WRONGTYPE     the marker key has another type
--
-- The check must be atomic with the request: if the server restarted between the two, A would be granted a name by an
-- empty process that it takes for the one it has watched. Every check precedes the first write. A marker lives for
-- seven days; once half of them have passed, a request that names no trusted process renews the TTL. So a marker that
-- is requested daily does not expire, and one that expires costs a watch, not safety.
local call, marker, last = redis.call, KEYS[#KEYS], #ARGV
local trusted, restarts = ARGV[last - 5], ARGV[last - 4]
local act, nonce = ARGV[last - 3], ARGV[last - 2]
local lease, longest = ARGV[last - 1], ARGV[last]
local kept, half = 604800000, 302400000

if longest - lease < 0 then
  return redis.error_reply('LONGESTLEASE a lease of ' .. lease .. ' ms is longer than ' .. longest .. ' ms')
end
-- A plain-text search is several times faster than a pattern over the whole text.
local text = call('INFO', 'replication')
local found = call('GET', marker)
if trusted ~= '' and found == trusted and string.find(text, 'master_replid:' .. string.sub(found, 1, 13), 1, true) then
  return execute()
end
local _, before = string.find(text, 'master_replid:', 1, true)
local process = before and string.sub(text, before + 1, before + 13)
-- Garnet's id is always zero: a restart that forgets claims would go unnoticed.
if not process or process == '0000000000000' then
  return redis.error_reply('ERR the server does not say which process it is: INFO replication has no master_replid')
end
local own, stated, ripeness
if found and string.sub(found, 1, 13) == process then
  own, stated, ripeness = string.match(found, '^:(%d+):(%d+):(%a+)$', 14)
  if stated ~= longest then
    return redis.error_reply('LONGESTLEASE the marker states ' .. tostring(stated) .. ' ms, and not ' .. longest .. ' ms')
  end
end

-- A process that was restarted with all its data takes over the marker of the process before it. Anything that
-- suggests another server's data prevents that: replicas, a former primary (master_replid2), a nonce other than the
-- client's. Only an act that writes a marker inherits one, so a client that refuses leaves no marker for another
-- client that knows less.
local inherited
local marks = act == 'mark' or act == 'fresh'
local expected = string.match(restarts, '^keep:?(%d*)$')
if marks and expected and found and not own
  and string.find(text, 'role:master', 1, true)
  and string.find(text, 'connected_slaves:0\r', 1, true)
  and string.find(text, 'master_replid2:' .. string.rep('0', 40), 1, true) then
  local known, figure = string.match(found, '^:(%d+):(%d+):ripe$', 14)
  if figure == longest and (expected == '' or expected == known) then inherited = known end
end

local reply = execute()
if type(reply) == 'table' and reply.err then return reply end

if inherited then
  own, ripeness = inherited, 'ripe'
  call('SET', marker, process .. ':' .. own .. ':' .. longest .. ':ripe', 'PX', kept)
elseif own then
  if act == 'ripen' and own == nonce then
    ripeness = 'ripe'
    call('SET', marker, process .. ':' .. own .. ':' .. longest .. ':ripe', 'PX', kept)
  elseif call('PTTL', marker) < half then
    call('PEXPIRE', marker, kept)
  end
elseif marks then
  own, ripeness = nonce, (act == 'fresh' and not found) and 'ripe' or 'unripe'
  call('SET', marker, process .. ':' .. own .. ':' .. longest .. ':' .. ripeness, 'PX', kept)
end

local state = own and (ripeness == 'ripe' and 3 or 2) or found and 1 or 0
return {reply, tonumber(process, 16), state, tonumber(own or 0)}
