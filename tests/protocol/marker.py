"""Markers: the check, a script around another one. The comments name the rules of docs/src/protocol.md."""

# Surrounds another script, or none. The last of KEYS: the marker. The last 7 of ARGV: act, nonce, figures, trusted nonce and
# figures, whether everything is kept, known nonce, lease. Returns {reply of the other script, state, nonce, process, figures}.
CHECK = """
local function execute() %s end
local marker, last = KEYS[#KEYS], #ARGV
local act, nonce, stated, trusted, keeps, known, lease = unpack(ARGV, last - 6, last)
local week = 604800000
local function parts(text)                                                                       -- M1
  if string.find(text, '^%%d+$') then return tonumber(text), tonumber(text), tonumber(text) end
  local granted, needed, watched = string.match(text, '^(%%d+)>(%%d+)>(%%d+)$')
  return tonumber(granted), tonumber(needed), tonumber(watched)
end
local _, needs, watches = parts(stated)
local info = redis.call('INFO', 'replication')
local process = string.sub(string.match(info, 'master_replid:(%%x+)') or '', 1, 13)              -- M1
if not string.find(process, '[^0]') then return redis.error_reply('ERR no master_replid') end
local text = redis.call('GET', marker)
local whose, has, figure, ripeness
if text then whose, has, figure, ripeness = string.match(text, '^(%%x+):(%%d+):([%%d>]+):(%%a+)$') end
local is_own = whose == process
local watched = figure and select(3, parts(figure))
local marks = act == 'mark' or act == 'mark anew' or act == 'mark fresh'
local trusts = is_own and ripeness == 'ripe' and has .. ' ' .. figure == trusted
local written
local function write(with, says, ripe)
  has, figure, ripeness, is_own, written = with, says, ripe, true, true
end
if trusts and act ~= 'restate' then                                                              -- M8
elseif trusts then write(has, stated, 'ripe')                                                    -- M9
elseif is_own and act == 'mark anew' and watched < needs then write(nonce, stated, 'unripe')                  -- M3
elseif is_own and act == 'ripen' and has == nonce and ripeness == 'unripe' and watched <= watches then
  write(has, stated, 'ripe')                                                                     -- M4
elseif is_own then                                                                               -- M6
elseif marks and keeps == '1' and ripeness == 'ripe'                                              -- M7
  and (known == '' or known == has) and string.find(info, 'role:master', 1, true)
  and string.find(info, 'connected_slaves:0\\r', 1, true)
  and string.find(info, 'master_replid2:' .. string.rep('0', 40), 1, true) then write(has, figure, 'ripe')
elseif marks then write(nonce, stated, act == 'mark fresh' and not text and 'ripe' or 'unripe') end -- M3
if parts(is_own and figure or stated) < tonumber(lease) then return redis.error_reply('LONGESTLEASE') end -- M2
ARGV.trusts = trusts  -- T9
local reply = execute()
if type(reply) == 'table' and reply.err then return reply end
if written then redis.call('SET', marker, process .. ':' .. has .. ':' .. figure .. ':' .. ripeness, 'PX', week)
elseif is_own and not trusts and redis.call('PTTL', marker) < week / 2 then redis.call('PEXPIRE', marker, week) end
text = text or written
if not text then return {reply, 'missing', '0', process, ''} end                                     -- M5
if not is_own then return {reply, "another's", '0', process, ''} end
return {reply, ripeness, has, process, figure}
"""

PROBE = CHECK % "return false"
