//! The Lua interpreter of a server.
//!
//! Each server has one interpreter. A script is compiled once and identified by its digest. `shim.lua` is the
//! environment of scripts.

mod convert;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use mlua::state::{GcIncParams, GcMode};
use mlua::{Function, HookTriggers, Lua, LuaOptions, StdLib, Table, Value, Variadic, VmState};

use crate::call::{Call, Flag, Lookup};
use crate::command_keys;
use crate::condition::Condition;
use crate::data::{Data, Role};
use crate::refusal::Refusal;
use crate::reply::Reply;

const SHIM: &str = include_str!("script/shim.lua");

/// The name under which error messages refer to a script.
const CHUNK: &str = "@user_script";

/// The number of instructions between two checks of a script.
const STRIDE: u32 = 100_000;
/// The number of checks after which a script is stopped: a second or two of real time.
const MOST_STRIDES: u32 = 1_000;

/// The largest memory of the scripts of a server, in bytes, which limits a running script.
const MOST_BYTES: usize = 256 * 1024 * 1024;

/// Garbage is collected when it is this percentage of what was left the last time. The scripts of a server leave little.
const GARBAGE: i32 = 1_000;

/// The scripts that a server has stored, and the interpreter that runs them.
pub(crate) struct Scripts {
    lua: Lua,
    running: Rc<Running>,
    /// Table that receives `KEYS` and `ARGV`.
    globals: Table,
    environment: Table,
    run: Function,
    known: BTreeMap<String, Function>,
}

/// The state that the functions of scripts share with the server.
struct Running {
    data: Rc<RefCell<Data>>,
    lookup: Lookup,
    db: Cell<usize>,
    /// Whether a command of this script has written. A server without memory then admits the others.
    has_written: Cell<bool>,
    strides: Cell<u32>,
    /// The error that the server raised last.
    raised: RefCell<Option<Table>>,
}

impl fmt::Debug for Scripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.known.keys()).finish()
    }
}

impl Scripts {
    /// Returns the scripts of a server. Their calls of commands are resolved by `lookup`.
    pub(crate) fn new(data: Rc<RefCell<Data>>, lookup: Lookup) -> Self {
        let running = Rc::new(Running {
            data,
            lookup,
            db: Cell::new(0),
            has_written: Cell::new(false),
            strides: Cell::new(0),
            raised: RefCell::default(),
        });
        Self::start(running).expect("BUG: the interpreter and its shim are a part of this program")
    }

    fn start(running: Rc<Running>) -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        lua.gc_set_mode(GcMode::Incremental(GcIncParams::default().pause(GARBAGE)));
        let triggers = HookTriggers::new().every_nth_instruction(STRIDE);
        let watched = Rc::clone(&running);
        lua.set_hook(triggers, move |_, _| watched.stride())?;
        let shim = lua.load(SHIM).set_name("@shim").into_function()?;
        let (globals, environment, run) = shim.call(native(&lua, &running)?)?;
        Ok(Scripts {
            lua,
            running,
            globals,
            environment,
            run,
            known: BTreeMap::new(),
        })
    }

    pub(crate) fn knows(&self, digest: &str) -> bool {
        self.known.contains_key(digest)
    }

    pub(crate) fn forget(&mut self) {
        self.known.clear();
    }

    /// Compiles a script, unless it is stored already, and returns its digest.
    pub(crate) fn load(&mut self, text: &[u8]) -> Result<String, Refusal> {
        let digest = digest(text);
        if !self.knows(&digest) {
            let chunk = self.lua.load(text).set_name(CHUNK);
            let chunk = chunk.set_mode(mlua::chunk::ChunkMode::Text);
            let script = chunk
                .set_environment(self.environment.clone())
                .into_function();
            let script = script.map_err(|error| does_not_compile(&error))?;
            self.known.insert(digest.clone(), script);
        }
        Ok(digest)
    }

    /// Runs a stored script. Its digest is in lower case.
    pub(crate) fn run(
        &self,
        digest: &str,
        db: usize,
        keys: &[Vec<u8>],
        args: &[Vec<u8>],
    ) -> Result<Reply, Refusal> {
        let script = self.known.get(digest);
        let script = script.ok_or(Refusal::of("NOSCRIPT No matching script. Please use EVAL."))?;
        self.running.db.set(db);
        self.running.has_written.set(false);
        self.running.strides.set(0);
        let ended = self.start_script(script, keys, args);
        ended
            .map_err(|error| Refusal(format!("ERR {error}").into()))
            .map(|(ok, result)| {
                if ok {
                    convert::reply(&result)
                } else {
                    failure(&result, digest)
                }
            })
    }

    fn start_script(
        &self,
        script: &Function,
        keys: &[Vec<u8>],
        args: &[Vec<u8>],
    ) -> mlua::Result<(bool, Value)> {
        for (name, words) in [("KEYS", keys), ("ARGV", args)] {
            let table = self.lua.create_table_with_capacity(words.len(), 0)?;
            for (at, word) in words.iter().enumerate() {
                table.raw_set(at + 1, self.lua.create_string(word)?)?;
            }
            self.globals.raw_set(name, table)?;
        }
        self.lua.set_memory_limit(MOST_BYTES)?;
        let ended = self.run.call(script);
        self.lua.set_memory_limit(0)?;
        ended
    }
}

/// Creates what a script receives without a limit of memory: while there is one, the interpreter makes two closures for each
/// value. The limit applies again to the script.
fn unlimited<T>(lua: &Lua, create: impl FnOnce() -> mlua::Result<T>) -> mlua::Result<T> {
    lua.set_memory_limit(0)?;
    let created = create();
    lua.set_memory_limit(MOST_BYTES)?;
    created
}

/// Returns the functions that `shim.lua` receives.
fn native(lua: &Lua, running: &Rc<Running>) -> mlua::Result<Table> {
    let native = lua.create_table()?;
    let shared = Rc::clone(running);
    let call = move |lua: &Lua, words: Variadic<Value>| {
        let reply = shared.execute(&words);
        let value = unlimited(lua, || convert::value(lua, &reply))?;
        match (reply, value) {
            (Reply::Error(_), Value::Table(error)) => Err(shared.raise(error)),
            (_, value) => Ok(value),
        }
    };
    native.set("call", lua.create_function(call)?)?;
    let shared = Rc::clone(running);
    let attempt = move |lua: &Lua, words: Variadic<Value>| {
        let reply = shared.execute(&words);
        unlimited(lua, || convert::value(lua, &reply))
    };
    native.set("pcall", lua.create_function(attempt)?)?;
    let shared = Rc::clone(running);
    let raised = move |_: &Lua, (): ()| Ok(shared.raised.borrow_mut().take());
    native.set("raised", lua.create_function(raised)?)?;
    native.set("place", lua.create_function(|lua, (): ()| Ok(place(lua)))?)?;
    let shared = Rc::clone(running);
    let is_stopped = move |_: &Lua, (): ()| Ok(MOST_STRIDES < shared.strides.get());
    native.set("is_stopped", lua.create_function(is_stopped)?)?;
    let shared = Rc::clone(running);
    let sha1hex = move |lua: &Lua, text: Variadic<mlua::LuaString>| match text.as_slice() {
        [text] => lua.create_string(digest(&text.as_bytes())),
        _ => {
            let error = lua.create_table()?;
            error.raw_set("err", "ERR wrong number of arguments")?;
            Err(shared.raise(error))
        }
    };
    native.set("sha1hex", lua.create_function(sha1hex)?)?;
    Ok(native)
}

/// Returns source and line of the innermost function of a script on the stack.
fn place(lua: &Lua) -> (Option<String>, Option<usize>) {
    const DEEPEST: usize = 16;
    let at = |level| {
        lua.inspect_stack(level, |debug| {
            let source = debug.source().source?.into_owned();
            (source == CHUNK).then(|| (source, debug.current_line()))
        })?
    };
    (1..DEEPEST)
        .find_map(at)
        .map_or((None, None), |(source, line)| (Some(source), line))
}

impl Running {
    /// Stores the table and returns an error that the shim replaces by it.
    fn raise(&self, error: Table) -> mlua::Error {
        *self.raised.borrow_mut() = Some(error);
        mlua::Error::runtime("raised")
    }

    /// Counts a check, and stops a script that does not end, even if it catches errors.
    fn stride(&self) -> mlua::Result<VmState> {
        let strides = self.strides.get() + 1;
        self.strides.set(strides);
        if MOST_STRIDES < strides {
            return Err(mlua::Error::runtime(
                "the script does not end, and was stopped",
            ));
        }
        Ok(VmState::Continue)
    }

    /// Executes a command that a script called.
    fn execute(&self, words: &[Value]) -> Reply {
        let refused = |text: &'static str| Refusal::of(text).into();
        if words.is_empty() {
            return refused("ERR Please specify at least one argument for this redis lib call");
        }
        let Some(words) = convert::words(words) else {
            return refused("ERR Lua redis lib command arguments must be strings or integers");
        };
        self.command(&words).unwrap_or_else(Reply::from)
    }

    fn command(&self, words: &[Vec<u8>]) -> Result<Reply, Refusal> {
        let command = words.first().and_then(|name| (self.lookup)(name));
        let command = command.ok_or(Refusal::of("ERR Unknown Redis command called from script"))?;
        if !command.shape.takes(words.len()) {
            return Err(Refusal::of(
                "ERR Wrong number of args calling Redis command from script",
            ));
        }
        let run = command
            .run
            .filter(|_| !command.shape.is(Flag::NotInScripts))
            .ok_or(Refusal::of(
                "ERR This Redis command is not allowed from script",
            ))?;
        let data = &mut *self.data.borrow_mut();
        let name = command.shape.name;
        if data.slots.is_some() {
            let keys = command_keys::of(name, words);
            let are_local = match command_keys::are_channels(name) {
                true => data.are_near(&keys),
                false => data.are_local(&keys),
            };
            if !are_local {
                return Err(Refusal::NOT_LOCAL);
            }
        }
        if command.shape.is(Flag::Write) {
            self.check_write(data, command.shape.is(Flag::Grows))?;
        }
        let mut db = self.db.get();
        let answer = run(&mut Call {
            data,
            db: &mut db,
            words,
        });
        self.db.set(db);
        answer
    }

    fn check_write(&self, data: &Data, grows: bool) -> Result<(), Refusal> {
        if data.role == Role::Replica || data.condition == Some(Condition::ReadOnly) {
            return Err(Refusal::READ_ONLY);
        }
        if data.condition == Some(Condition::FewReplicas) {
            return Err(Refusal::FEW_REPLICAS);
        }
        let is_full = data.condition == Some(Condition::OutOfMemory);
        if is_full && grows && !self.has_written.get() {
            return Err(Refusal::OUT_OF_MEMORY);
        }
        self.has_written.set(true);
        Ok(())
    }
}

/// Returns the reply for an error that a script did not catch.
fn failure(error: &Value, digest: &str) -> Reply {
    let field = |name: &str| {
        let table = error.as_table()?;
        let text: mlua::LuaString = table.raw_get(name).ok()?;
        Some(text.as_bytes().to_vec())
    };
    let mut text = field("err").unwrap_or_else(|| b"ERR unknown error".to_vec());
    if let (Some(source), Some(line)) = (field("source"), field("line")) {
        let (source, line) = (
            String::from_utf8_lossy(&source),
            String::from_utf8_lossy(&line),
        );
        text.extend_from_slice(format!(" script: {digest}, on {source}:{line}.").as_bytes());
    }
    Reply::Error(text)
}

fn does_not_compile(error: &mlua::Error) -> Refusal {
    let what = match error {
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        other => other.to_string(),
    };
    Refusal(format!("ERR Error compiling script (new function): {what}").into())
}

fn digest(text: &[u8]) -> String {
    sha1_smol::Sha1::from(text).digest().to_string()
}
