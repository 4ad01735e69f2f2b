-- Keeps token counters while claims continue. It needs counter.lua before it.

-- Returns whether a renewal looks at the TTL of a counter that already has the hold's token. It does so during the
-- first `lease` ms of each eighth of the time for which counters are kept. Renewals of a claim are less than its lease
-- apart, so one of them falls into that time, and the counter is written again before five eighths of its time and a
-- lease are over. The claim, of at most an eighth, ends before the rest is over. For a longer lease, and if counters are
-- kept for ever, each renewal looks.
local function is_counter_due(kept, lease, now)
  return kept + 0 < 8 * lease or now % math.floor(kept / 8) < lease + 0
end

-- Keeps the counter while a claim continues, for the next `lease` ms. The counter is written only if it is lower than
-- the hold's token, or if half of its time is over: a hold of an hour is renewed hundreds of times without a change.
-- A claim shorter than the other half ends before the counter does; for a longer one the counter is written each
-- time.
local function carry_token(call, counter, stored, token, kept, lease)
  if stored == token then
    local left = call('PTTL', counter)
    if kept == '0' and left == -1 then return end
    if kept ~= '0' and lease * 2 <= kept + 0 and kept + 0 <= left * 2 then return end
  end
  store_token(call, counter, string.format('%.0f', token), kept)
end
