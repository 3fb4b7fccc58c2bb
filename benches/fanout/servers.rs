//! Starts a server in a process of its own on its own core, and ends it again.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};

/// The core of the load generator.
const GENERATOR: usize = 0;

/// The core of the server.
const SERVER: &str = "1";

/// A running server. Killed when dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    pub admin: Option<SocketAddr>,
    /// Kept open: a server must not fail for writing.
    _out: BufReader<ChildStdout>,
    _folder: Option<tempfile::TempDir>,
}

/// Keeps this process, the load generator, on its core. False if there is only one.
pub fn pin_generator() -> bool {
    let mut cores = CpuSet::new();
    cores.set(GENERATOR);
    std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
        && sched_setaffinity(None, &cores).is_ok()
}

/// Names another build of the program, to be measured beside this one in the same rounds.
const BEFORE: &str = "FANOUT_BEFORE";

/// Tidegate itself, one shard, as released.
#[derive(Clone, Default)]
pub struct Tidegate {
    /// Another build than this tree's.
    pub program: Option<PathBuf>,
    /// Lines for `[gateway]` and `[subscriber]`.
    pub gateway: String,
    pub subscriber: String,
}

impl Tidegate {
    /// The same settings for the build that `FANOUT_BEFORE` names, if it names one.
    pub fn before(&self) -> Option<Self> {
        let program = std::env::var_os(BEFORE)?;
        Some(Self { program: Some(program.into()), ..self.clone() })
    }
}

impl Server {
    /// Starts Tidegate with a line feed; answers the feed's connection too.
    pub fn tidegate(settings: &Tidegate) -> io::Result<(Self, TcpStream)> {
        let feed = TcpListener::bind("127.0.0.1:0")?;
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("t.toml");
        let Tidegate { program, gateway, subscriber } = settings;
        let config = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\nshards = 1\nmax_subscribers = 20000\n{gateway}\n\
             [subscriber]\n{subscriber}\n[admin]\nlisten = \"127.0.0.1:0\"\n\
             [[feed]]\nname = \"f\"\nvenue = \"binance\"\nlines = \"tcp://{}\"\n",
            feed.local_addr()?
        );
        std::fs::write(&file, config)?;
        let built = Path::new(env!("CARGO_BIN_EXE_tidegate"));
        let mut command = pinned(program.as_deref().unwrap_or(built));
        command.args(["serve", "--log", "warn", "--config"]).arg(&file);
        let (child, out, line) = spawn(command)?;
        let mut words = line.split(|c: char| c == ',' || c.is_whitespace());
        let mut address = || words.find_map(|word| word.parse().ok());
        let (Some(gateway), admin) = (address(), address()) else {
            return Err(io::Error::other(format!("not ready: {line:?}")));
        };
        let (feed, _) = feed.accept()?;
        let server = Self { child, address: gateway, admin, _out: out, _folder: Some(folder) };
        Ok((server, feed))
    }

    /// This very program in another role; see `main`.
    pub fn role(arguments: &[String]) -> io::Result<Self> {
        let mut command = pinned(&std::env::current_exe()?);
        command.arg("--role").args(arguments);
        Self::of(command)
    }

    pub fn bun(peers: &Peers, arguments: &[String]) -> io::Result<Self> {
        let mut command = pinned(&peers.folder.join("bun"));
        command.arg(script("bun.js")).args(arguments);
        Self::of(command)
    }

    pub fn node(peers: &Peers, arguments: &[String]) -> io::Result<Self> {
        let mut command = pinned(Path::new("node"));
        command.env("FANOUT_WS", peers.folder.join("node_modules/ws"));
        command.arg(script("nodews.cjs")).args(arguments);
        Self::of(command)
    }

    /// nats-server with its WebSocket side; answers a publisher's connection too.
    pub fn nats(peers: &Peers) -> io::Result<(Self, TcpStream)> {
        let (client, websocket) = (free_port()?, free_port()?);
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("nats.conf");
        let config = format!(
            "listen: \"127.0.0.1:{client}\"\nping_interval: \"10m\"\nmax_pending: 1GB\n\
             websocket {{ listen: \"127.0.0.1:{websocket}\", no_tls: true, compression: false }}\n"
        );
        std::fs::write(&file, config)?;
        let mut command = pinned(&peers.nats);
        command.arg("-c").arg(&file).arg("--log").arg(folder.path().join("log"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let out = BufReader::new(child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
        let address = SocketAddr::from(([127, 0, 0, 1], websocket));
        let server = Self { child, address, admin: None, _out: out, _folder: Some(folder) };
        let mut publisher = connect_patiently(SocketAddr::from(([127, 0, 0, 1], client)))?;
        publisher.write_all(b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\n")?;
        connect_patiently(address)?;
        Ok((server, publisher))
    }

    fn of(command: Command) -> io::Result<Self> {
        let (child, out, line) = spawn(command)?;
        let port = line.trim().strip_prefix("ready ").and_then(|port| port.parse::<u16>().ok());
        let port = port.ok_or_else(|| io::Error::other(format!("not ready: {line:?}")))?;
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Ok(Self { child, address, admin: None, _out: out, _folder: None })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// A counter of Tidegate's metrics; 0 for what is not there.
    pub fn metric(&self, name: &str) -> f64 {
        let Some(admin) = self.admin else { return 0.0 };
        let ask = || {
            let mut stream = TcpStream::connect(admin)?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            stream.write_all(
                b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            )?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            io::Result::Ok(answer)
        };
        let answer = ask().unwrap_or_default();
        let lines = answer.lines().filter_map(|line| line.rsplit_once(' '));
        lines
            .filter(|(key, _)| *key == name)
            .find_map(|(_, value)| value.parse().ok())
            .unwrap_or(0.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The peers that the script has fetched.
pub struct Peers {
    folder: PathBuf,
    nats: PathBuf,
    pub has_bun: bool,
    pub has_nats: bool,
    pub has_nodews: bool,
    /// Is in this program.
    pub has_tungstenite: bool,
}

impl Peers {
    /// None of them.
    pub fn none() -> Self {
        let none = PathBuf::new();
        Self {
            folder: none.clone(),
            nats: none,
            has_bun: false,
            has_nats: false,
            has_nodews: false,
            has_tungstenite: false,
        }
    }

    /// Runs the script that fetches what is missing, and looks at what there is.
    pub fn fetch() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = std::env::var_os("FANOUT_PEERS")
            .map_or_else(|| root.join("target/peers"), PathBuf::from);
        let done = Command::new("bash").arg(script("peers.sh")).arg(&folder).status();
        if !done.is_ok_and(|status| status.success()) {
            println!("peers: the script that fetches them failed");
        }
        let own = folder.join("nats-server");
        let nats = if own.exists() { own } else { PathBuf::from("nats-server") };
        let runs = |program: &Path| {
            let mut command = Command::new(program);
            command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        Self {
            has_bun: runs(&folder.join("bun")),
            has_nats: runs(&nats),
            has_nodews: runs(Path::new("node")) && folder.join("node_modules/ws").exists(),
            has_tungstenite: true,
            folder,
            nats,
        }
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/fanout").join(name)
}

fn pinned(program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", SERVER]).arg(program);
    command
}

/// Starts it and reads its first line. `taskset` becomes the program, so its id is the program's.
fn spawn(mut command: Command) -> io::Result<(Child, BufReader<ChildStdout>, String)> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut out = BufReader::new(child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
    let mut line = String::new();
    out.read_line(&mut line)?;
    Ok((child, out, line))
}

fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn connect_patiently(address: SocketAddr) -> io::Result<TcpStream> {
    let mut tries = 0;
    loop {
        match TcpStream::connect(address) {
            Err(_) if tries < 500 => tries += 1,
            connected => return connected,
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
