//! The adapter against SIPp, which checks passwords and scenarios of its own.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::json;
use tokio::task::spawn_blocking;

use crate::support::{Caller, PASSWORD, short};

/// A trunk that takes one call; it ends with the test.
struct Sipp {
    process: Child,
    port: u16,
}

impl Drop for Sipp {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A free port. Below those that the system gives away by itself: nobody gets it before SIPp does, which also takes the next for RTCP.
fn port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(24_000);
    loop {
        let port = NEXT.fetch_add(4, Ordering::Relaxed);
        let free =
            (port..port + 4).all(|port| UdpSocket::bind(("127.0.0.1", port)).is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok());
        if free {
            return port;
        }
    }
}

impl Sipp {
    fn start(scenario: &str, status: &str, tcp: bool) -> Self {
        let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../peers/sipp");
        let text = fs::read_to_string(peers.join(format!("{scenario}.xml"))).unwrap();
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{scenario}-{}.xml", status.split(' ').next().unwrap()));
        fs::write(&file, text.replace("STATUS", status)).unwrap();
        let [sip, media, control] = [(); 3].map(|()| port());
        let args = ["-m", "1", "-nostdin", "-rtp_echo", "-i", "127.0.0.1", "-mi", "127.0.0.1", "-ci", "127.0.0.1", "-timeout", "30"];
        let mut process = Command::new("sipp")
            .args(args)
            .args(["-p", &sip.to_string(), "-mp", &media.to_string(), "-cp", &control.to_string()])
            .args(["-t", if tcp { "t1" } else { "u1" }])
            .arg("-sf")
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("sipp; scripts/deps.sh installs it");
        // It says nothing when it listens. Whoever tried to bind its port to find out would take it from SIPp for that moment.
        let table = if tcp { "/proc/net/tcp" } else { "/proc/net/udp" };
        let taken = || fs::read_to_string(table).unwrap().contains(&format!("0100007F:{sip:04X} 00000000:0000"));
        while !taken() {
            assert_eq!(process.try_wait().unwrap(), None, "sipp ended");
            std::thread::yield_now();
        }
        Self { process, port: sip }
    }

    /// Whether the call went as the scenario says, to its end.
    async fn went_as_written(mut self) -> bool {
        spawn_blocking(move || self.process.wait().unwrap().success()).await.unwrap()
    }
}

/// SIPp knows nothing but its scenario.
fn caller(port: u16) -> Caller {
    Caller::new(port, json!({ "options_ping": false, "ring_seconds": 5, "timeout_seconds": 2 }))
}

#[tokio::test]
#[ignore = "needs SIPp"]
async fn heavy_sipp_takes_calls_over_udp_and_tcp() {
    for tcp in [false, true] {
        let sipp = Sipp::start("answers", "-", tcp);
        let caller = Caller::new(sipp.port, json!({ "options_ping": false, "transport": if tcp { "tcp" } else { "udp" } }));
        assert_eq!(short(&caller.send().await), ("accepted", "", None, ""));
        assert!(sipp.went_as_written().await, "tcp: {tcp}");
    }
}

#[tokio::test]
#[ignore = "needs SIPp"]
async fn heavy_sipp_knows_a_wrong_password() {
    let sipp = Sipp::start("answers", "-", false);
    let mut account = crate::support::account(sipp.port, json!({ "options_ping": false }));
    let wrong = nuncio_channel::testing::object(json!({ "password": PASSWORD.replace("horse", "house") }));
    account.secrets = nuncio_domain::Redacted::new(wrong);
    let caller = Caller::of(&account);
    let outcome = caller.send().await;
    assert_eq!((short(&outcome).0, short(&outcome).1), ("connection", "credentials_invalid"));
    assert!(sipp.went_as_written().await);
}

#[tokio::test]
#[ignore = "needs SIPp"]
async fn heavy_sipp_refuses_calls() {
    for (status, wanted) in [
        ("486 Busy Here", ("deferred", "undeliverable")),
        ("603 Decline", ("rejected", "undeliverable")),
        ("404 Not Found", ("rejected", "invalid_recipient")),
        ("403 Forbidden", ("rejected", "provider_rejected")),
        ("503 Service Unavailable", ("deferred", "undeliverable")),
    ] {
        let sipp = Sipp::start("refuses", status, false);
        let outcome = caller(sipp.port).send().await;
        assert_eq!((short(&outcome).0, short(&outcome).1), wanted, "{status}");
        assert!(sipp.went_as_written().await, "{status}");
    }
}

#[tokio::test]
#[ignore = "needs SIPp"]
async fn heavy_sipp_rings_in_vain() {
    let sipp = Sipp::start("rings", "-", false);
    let outcome = caller(sipp.port).send().await;
    assert_eq!(short(&outcome), ("deferred", "undeliverable", Some(600), "the call was not answered within 5 seconds"));
    assert!(sipp.went_as_written().await);
}
