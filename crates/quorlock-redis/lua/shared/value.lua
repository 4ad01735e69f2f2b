-- The value of an owner's field in a claim: its hold count, and with a margin behind it the claim version, which is the number
-- of the owner's request and the lease in ms that it stated.

-- Returns the value with another count. The number of a claim version only grows: a late copy of an older request does not undo
-- what a newer one stated. `mine` is the claim version of the request; nil or false if it has none.
local function with_count(value, count, mine)
  local version = string.match(value, '^%d+ (%d+ %d+)$')
  local is_newer = version and mine and tonumber(string.match(version, '^%d+')) < tonumber(string.match(mine, '^%d+'))
  if version and not is_newer then mine = version end
  return mine and count .. ' ' .. mine or count
end
