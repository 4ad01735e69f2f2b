-- The environment of scripts, and how they are run. The functions of the server are in `native`.
--
-- native.call(...), native.pcall(...)  execute a command; the first raises the error that the second returns
-- native.raised()                      the table for the error that the server raised last
-- native.is_stopped()                  whether the script has run for too long and must not continue
-- native.place()                       source and line of the script that is running
-- native.sha1hex(text)                 the SHA-1 digest of a text, in hexadecimal
--
-- Returns the table of globals, in which the server puts KEYS and ARGV, the environment of scripts, and the function
-- that runs one: it returns true and a result, or false and a table {err, source, line}.
local native = ...
local pcall, xpcall, loadstring, setfenv = pcall, xpcall, loadstring, setfenv

local function readonly() error('Attempt to modify a readonly table', 2) end

-- Libraries that scripts share are read-only: otherwise one script would see the changes of another.
local function sealed(library)
  return setmetatable({}, { __index = library, __newindex = readonly, __metatable = false })
end

local function missing(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end

local globals = setmetatable({}, { __index = missing })
local environment = sealed(globals)
globals._G, globals._VERSION = environment, _VERSION
for _, name in ipairs {
  'assert', 'error', 'getmetatable', 'ipairs', 'next', 'pairs', 'rawequal', 'rawget', 'select', 'setmetatable',
  'tonumber', 'tostring', 'type', 'unpack',
} do
  globals[name] = _G[name]
end

-- Random numbers would differ from run to run, and compiled code is not verified.
math.random, math.randomseed, string.dump = nil, nil, nil
globals.math, globals.string, globals.table = sealed(math), sealed(string), sealed(table)
local of_strings = getmetatable('')
of_strings.__index, of_strings.__metatable = globals.string, false

-- The server's errors arrive as userdata, and are replaced by their tables.
local function translated(err)
  if type(err) ~= 'userdata' then return err end
  return native.raised() or { err = 'ERR ' .. tostring(err) }
end

-- A script cannot catch the error that stops it.
local function unless_stopped(ok, ...)
  if not ok and native.is_stopped() then error('stopped', 0) end
  return ok, ...
end

-- A script that catches the error of a command receives its text.
local function caught(ok, ...)
  if ok then return true, ... end
  local err = translated((...))
  if type(err) == 'table' and type(err.err) == 'string' then err = err.err end
  return unless_stopped(false, err)
end

function globals.pcall(...) return caught(pcall(...)) end

function globals.xpcall(body, handler)
  return unless_stopped(xpcall(body, function(err) return handler(translated(err)) end))
end

function globals.loadstring(text, name)
  if type(text) == 'string' and string.byte(text) == 27 then return nil, 'compiled code is not taken' end
  local chunk, err = loadstring(text, name)
  return chunk and setfenv(chunk, environment), err
end

-- Returns an error reply. The first word of its text is the code of the error.
local function error_reply(...)
  local text = ...
  if select('#', ...) ~= 1 or type(text) ~= 'string' then
    return { err = 'ERR wrong number or type of arguments' }
  end
  text = string.gsub(text, '^-', '')
  if not string.find(text, ' ', 1, true) then text = 'ERR ' .. text end
  return { err = text }
end

local function status_reply(...)
  local text = ...
  if select('#', ...) ~= 1 or type(text) ~= 'string' then
    return { err = 'ERR wrong number or type of arguments' }
  end
  return { ok = text }
end

globals.redis = sealed {
  call = native.call,
  pcall = native.pcall,
  sha1hex = native.sha1hex,
  error_reply = error_reply,
  status_reply = status_reply,
  -- There is no log, and only effects are ever replicated.
  log = function() end,
  replicate_commands = function() return true end,
  set_repl = function() end,
  LOG_DEBUG = 0, LOG_VERBOSE = 1, LOG_NOTICE = 2, LOG_WARNING = 3,
  REPL_NONE = 0, REPL_AOF = 1, REPL_SLAVE = 2, REPL_REPLICA = 2, REPL_ALL = 3,
}

local function failed(err)
  err = translated(err)
  if native.is_stopped() then err = 'the script does not end, and was stopped' end
  if type(err) ~= 'table' then err = { err = 'ERR ' .. tostring(err) } end
  if type(err.err) ~= 'string' then err.err = 'ERR unknown error' end
  err.source, err.line = native.place()
  return err
end

local function run(script) return xpcall(script, failed) end

return globals, environment, run
