-- Checks which process the server is, in one step with a request. The request's own script precedes this one, as the
-- function execute(); a probe has an empty one.
--
-- KEYS, last       the marker: a string "<first 13 digits of master_replid>:<nonce>:<figures>:<unripe or ripe>"
--                  figures: one number of ms if the next three are equal, otherwise the three: "60000>60000>120000"
--                    granted = the longest lease that this server grants
--                    needed = how long a server must have been watched for its vote to count
--                    watched = how long this process was watched, or is being watched
-- ARGV, last six   the ripe marker of the process that the client trusts, or empty. The lease is at most its granted
--                  'keep' if restarts keep every write and no other server takes over this address, 'keep:<nonce>' if the
--                  client also knows the nonce that it trusted last, or empty
--                  act: 'look'; or 'mark' = write an unripe marker if this process has none (with 'keep', the script may
--                  inherit the ripe marker that it finds); or 'anew' = the same, and replace a marker that was watched for
--                  less than the client's needed; or 'fresh' = the same as 'mark', but a ripe one if there is no marker;
--                  or 'ripen' = make the unripe marker of this process with this nonce ripe, if the client watched for as
--                  long as it states, and write the client's figures; or 'restate' = write the client's figures into the
--                  marker that it trusts
--                  nonce
--                  lease of the request in ms
--                  figures of the client
--
-- Replies  that of execute(), if the server is the trusted process; otherwise
--          {reply of execute(), first 52 bits of master_replid, state, nonce, figures}
--          state 0 = no marker, 1 = marker of another process, 2 = of this process and unripe, 3 = of this process and ripe;
--          nonce is 0 and figures is empty unless the marker is of this process
-- Errors   LONGESTLEASE  the lease is longer than the marker of this process grants; without one, than the client's granted
--          WRONGTYPE     the marker key has another type
--
-- The check must be atomic with the request: if the server restarted between the two, A would be granted a name by an
-- empty process that it takes for the one it has watched. Every check precedes the first write. A marker lives for
-- seven days; once half of them have passed, a request that names no trusted process renews the TTL. So a marker that
-- is requested daily does not expire, and one that expires costs a watch, not safety.
local call, marker, last = redis.call, KEYS[#KEYS], #ARGV
local trusted, restarts = ARGV[last - 5], ARGV[last - 4]
local act, nonce = ARGV[last - 3], ARGV[last - 2]
local lease, stated = ARGV[last - 1], ARGV[last]
local kept, half = 604800000, 302400000

-- A plain-text search is several times faster than a pattern over the whole text.
local text = call('INFO', 'replication')
local found = call('GET', marker)
local trusts = trusted ~= '' and found == trusted
  and string.find(text, 'master_replid:' .. string.sub(found, 1, 13), 1, true)
ARGV.is_trusted = trusts
if trusts and act ~= 'restate' then
  return execute()
end
local _, before = string.find(text, 'master_replid:', 1, true)
local process = before and string.sub(text, before + 1, before + 13)
-- Garnet's id is always zero: a restart that forgets claims would go unnoticed.
if not process or process == '0000000000000' then
  return redis.error_reply('ERR the server does not say which process it is: INFO replication has no master_replid')
end

-- Returns the granted, the needed and the watched of a text; nil if it is not of this form, or not in this order.
local function three(figures)
  if string.find(figures, '^%d+$') then
    return figures + 0, figures + 0, figures + 0
  end
  local granted, needed, watched = string.match(figures, '^(%d+)>(%d+)>(%d+)$')
  granted, needed, watched = tonumber(granted), tonumber(needed), tonumber(watched)
  if watched and granted <= needed and needed <= watched then
    return granted, needed, watched
  end
end

local _, needs, watches = three(stated)
local marks = act == 'mark' or act == 'fresh' or act == 'anew'
-- The nonce, figures and ripeness of this process's marker after the request.
local own, figures, ripeness
-- Whether the marker is written, and not only kept.
local writes
local is_anothers = found and string.sub(found, 1, 13) ~= process
if found and not is_anothers then
  own, figures, ripeness = string.match(found, '^:(%d+):([%d>]+):(%a+)$', 14)
  local _, _, watched = three(figures or '')
  if not watched then return redis.error_reply('ERR another program has written the marker: ' .. found) end
  if act == 'anew' and watched < needs then
    own = nil
  elseif trusts or act == 'ripen' and own == nonce and ripeness == 'unripe' and watched <= watches then
    figures, ripeness, writes = stated, 'ripe', true
  end
end

-- A process that was restarted with all its data takes over the marker of the process before it. Anything that
-- suggests another server's data prevents that: replicas, a former primary (master_replid2), a nonce other than the
-- client's. Only an act that writes a marker inherits one, so a client that refuses leaves no marker for another
-- client that knows less.
local expected = string.match(restarts, '^keep:?(%d*)$')
if marks and expected and is_anothers
  and string.find(text, 'role:master', 1, true)
  and string.find(text, 'connected_slaves:0\r', 1, true)
  and string.find(text, 'master_replid2:' .. string.rep('0', 40), 1, true) then
  local known, theirs = string.match(found, '^:(%d+):([%d>]+):ripe$', 14)
  if three(theirs or '') and (expected == '' or expected == known) then
    own, figures, ripeness, writes = known, theirs, 'ripe', true
  end
end
if marks and not own then
  own, figures, ripeness, writes = nonce, stated, (act == 'fresh' and not found) and 'ripe' or 'unripe', true
end

local granted = three(own and figures or stated)
if granted - lease < 0 then
  return redis.error_reply('LONGESTLEASE a lease of ' .. lease .. ' ms is longer than ' .. string.format('%.0f', granted) .. ' ms')
end

local reply = execute()
if type(reply) == 'table' and reply.err then return reply end

if writes then
  call('SET', marker, process .. ':' .. own .. ':' .. figures .. ':' .. ripeness, 'PX', kept)
elseif own and call('PTTL', marker) < half then
  call('PEXPIRE', marker, kept)
end

local state = own and (ripeness == 'ripe' and 3 or 2) or found and 1 or 0
return {reply, tonumber(process, 16), state, tonumber(own or 0), own and figures or ''}
