-- A renewal of claims that outlive their leases by a margin, and have beats. It follows renew.lua, which is the
-- function execute() here, and which is told each lease and the margin as one.
--
-- KEYS, last third      the beats of the names, in the order of the claims: see acquire_beat.lua
-- ARGV, last four each  owner; number of the request; lease without the margin in ms; lease and margin in ms
--
-- Replies  as renew.lua
--
-- It must be atomic: a beat says that its claim was extended.
local claims = #KEYS / 3
local keys, beats = {}, {}
for i = claims, 1, -1 do
  keys[i] = table.remove(KEYS)
  local kept, stated, number, owner =
    table.remove(ARGV), table.remove(ARGV), table.remove(ARGV), table.remove(ARGV)
  beats[i] = {owner, number, stated, kept}
end

local replies = execute()
for i = 1, claims do
  if replies[i] >= 0 then
    local key, owner, number, stated, kept = keys[i], unpack(beats[i])
    local beat = redis.pcall('GET', key)
    if type(beat) == 'table' then beat = false end
    local whose, before = string.match(beat or '', '^(%S+) (%d+) %d+$')
    if whose ~= owner or tonumber(before) < tonumber(number) then beat = owner .. ' ' .. number .. ' ' .. stated end
    local left = redis.call('PTTL', KEYS[2 * i - 1])
    redis.call('SET', key, beat, 'PX', left < tonumber(kept) and kept or left)
  end
end
return replies
