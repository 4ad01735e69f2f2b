"""Markers: the check, a script around another one. The comments name the rules of docs/src/protocol.md."""

# Surrounds another script, or none. The last of KEYS: the marker. The last 7 of ARGV: act, nonce, longest, trusted nonce,
# whether everything is kept, known nonce, lease. Returns {reply of the other script, state of the marker, nonce, process}.
CHECK = """
local function execute() %s end
local marker, last = KEYS[#KEYS], #ARGV
local act, nonce, longest, trusted, keeps, known, lease = unpack(ARGV, last - 6, last)
local week = 604800000
if tonumber(longest) < tonumber(lease) then return redis.error_reply('LONGESTLEASE') end         -- M2
local info = redis.call('INFO', 'replication')
local process = string.sub(string.match(info, 'master_replid:(%%x+)') or '', 1, 13)              -- M1
if not string.find(process, '[^0]') then return redis.error_reply('ERR no master_replid') end
local text = redis.call('GET', marker)
local whose, has, figure, ripeness
if text then whose, has, figure, ripeness = string.match(text, '^(%%x+):(%%d+):(%%d+):(%%a+)$') end
local is_own = whose == process
if is_own and figure ~= longest then return redis.error_reply('LONGESTLEASE') end
local reply = execute()
if type(reply) == 'table' and reply.err then return reply end
local function write(with, ripe)
  redis.call('SET', marker, process .. ':' .. with .. ':' .. longest .. ':' .. ripe, 'PX', week)
  text, has, ripeness, is_own = true, with, ripe, true
end
local marks = act == 'mark' or act == 'mark fresh'
if is_own and ripeness == 'ripe' and has == trusted then                                         -- M8
elseif is_own and act == 'ripen' and has == nonce then write(has, 'ripe')                        -- M4
elseif is_own then                                                                               -- M6
  if redis.call('PTTL', marker) < week / 2 then redis.call('PEXPIRE', marker, week) end
elseif marks and keeps == '1' and ripeness == 'ripe' and figure == longest                       -- M7
  and (known == '' or known == has) and string.find(info, 'role:master', 1, true)
  and string.find(info, 'connected_slaves:0\\r', 1, true)
  and string.find(info, 'master_replid2:' .. string.rep('0', 40), 1, true) then write(has, 'ripe')
elseif marks then write(nonce, act == 'mark fresh' and not text and 'ripe' or 'unripe') end      -- M3
if not text then return {reply, 'missing', '0', process} end                                     -- M5
if not is_own then return {reply, "another's", '0', process} end
return {reply, ripeness, has, process}
"""

PROBE = CHECK % "return false"
