//! The adapter against a telephone of other people's making, PJSIP, which records what it hears; the voice is espeak-ng's.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nuncio_channel::testing::{PeerProcess, object, python_peer};
use nuncio_channel::{Outcome, ProviderEvent};
use serde_json::{Value, json};

use crate::support::{Caller, short};

/// The telephone; it ends with the test.
struct Phone {
    process: PeerProcess,
    port: u16,
    recording: PathBuf,
}

impl Drop for Phone {
    fn drop(&mut self) {
        self.process.stop();
        std::fs::remove_file(&self.recording).ok();
    }
}

impl Phone {
    fn start(name: &str, args: &[&str]) -> Self {
        let recording = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("phone-{name}-{}.wav", std::process::id()));
        let process = PeerProcess::start(python_peer("phone.py").arg(&recording).args(args));
        let mut phone = Self { process, port: 0, recording };
        phone.port = u16::try_from(phone.seen()["port"].as_u64().unwrap()).unwrap();
        phone
    }

    /// What it tells next. PJSIP itself tells more, in lines of its own.
    fn seen(&mut self) -> Value {
        let mut lines = std::iter::repeat_with(|| self.process.line());
        serde_json::from_str(&lines.find(|line| line.starts_with('{')).unwrap()).unwrap()
    }

    /// What it heard.
    fn heard(&self) -> Speech {
        Speech::read(&std::fs::read(&self.recording).unwrap())
    }
}

/// Sound, as far as it is loud.
#[derive(Debug)]
struct Speech {
    /// From the first loud tenth of a second to the end of the last, in seconds.
    lasts: f64,
    /// Root of the mean square of that, 1 being the loudest possible.
    loudness: f64,
}

impl Speech {
    /// Reads a WAV file of 16 bits in one channel, as both programs write it.
    fn read(file: &[u8]) -> Self {
        let rate = f64::from(u32::from_le_bytes(*file[24..].first_chunk().unwrap()));
        let samples: Vec<_> = file[44..].as_chunks().0.iter().map(|pair| f64::from(i16::from_le_bytes(*pair)) / 32_768.0).collect();
        let mean_square = |samples: &[f64]| samples.iter().map(|s| s * s).sum::<f64>() / samples.len() as f64;
        let tenth = (rate / 10.0) as usize;
        let loud: Vec<_> = samples.chunks(tenth).map(|chunk| mean_square(chunk) > 1e-4).collect();
        let first = loud.iter().position(|l| *l).expect("something is heard");
        let last = loud.iter().rposition(|l| *l).unwrap() + 1;
        let spoken = &samples[first * tenth..(last * tenth).min(samples.len())];
        Self { lasts: (last - first) as f64 / 10.0, loudness: mean_square(spoken).sqrt() }
    }

    /// What espeak-ng says by itself.
    fn of_espeak(voice: &str, text: &str) -> Self {
        let mut espeak = Command::new("espeak-ng")
            .args(["--stdin", "--stdout", "-v", voice])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("espeak-ng; scripts/deps.sh installs it");
        espeak.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        Self::read(&espeak.wait_with_output().unwrap().stdout)
    }
}

const TEXT: &str = "Su código es cuatro, ocho, quince.\nGracias por su compra.";

fn caller(phone: &Phone, more: Value) -> Caller {
    let mut settings = json!({ "username": null, "tts_command": null });
    settings.as_object_mut().unwrap().extend(object(more));
    let mut caller = Caller::new(phone.port, settings);
    caller.message.request_mut().text = Some(TEXT.into());
    caller
}

#[tokio::test]
#[ignore = "needs PJSIP and espeak-ng"]
async fn heavy_a_phone_hears_what_espeak_says() {
    for codecs in ["pcmu", "pcma"] {
        let mut phone = Phone::start(codecs, &[]);
        let caller = caller(&phone, json!({ "codecs": codecs }));
        let outcome = caller.send().await;
        let Outcome::Accepted { refs, .. } = &outcome else { panic!("{outcome:?}") };
        let ended = phone.seen();
        assert_eq!((ended["event"].as_str(), ended["call_id"].as_str()), (Some("ended"), Some(&*refs[0])));
        let (heard, said) = (phone.heard(), Speech::of_espeak("es", TEXT));
        println!("{codecs}: heard {heard:?}, said {said:?}");
        assert!((heard.lasts - said.lasts).abs() < 0.4, "heard {heard:?}, said {said:?}");
        assert!(heard.loudness > 0.5 * said.loudness && heard.loudness < 1.5 * said.loudness, "heard {heard:?}, said {said:?}");
    }
}

#[tokio::test]
#[ignore = "needs PJSIP and espeak-ng"]
async fn heavy_a_phone_is_busy_or_declines() {
    for (code, wanted) in [("486", ("deferred", "undeliverable")), ("603", ("rejected", "undeliverable"))] {
        let phone = Phone::start(code, &[code]);
        let outcome = caller(&phone, json!({})).send().await;
        assert_eq!((short(&outcome).0, short(&outcome).1), wanted);
    }
}

#[tokio::test]
#[ignore = "needs PJSIP and espeak-ng"]
async fn heavy_a_phone_presses_a_key() {
    let phone = Phone::start("key", &["200", "9"]);
    let mut caller = caller(&phone, json!({}));
    assert!(matches!(caller.send().await, Outcome::Accepted { .. }));
    assert!(matches!(caller.told(), Some(ProviderEvent::Receipt { .. })));
    assert!(matches!(caller.told(), Some(ProviderEvent::OptedOut(_))));
}

#[tokio::test]
#[ignore = "needs PJSIP and espeak-ng"]
async fn heavy_a_phone_hangs_up() {
    let phone = Phone::start("hangs-up", &["200", "-", "1.5"]);
    let outcome = caller(&phone, json!({})).send().await;
    assert!(short(&outcome).3.starts_with("the recipient hung up after "), "{outcome:?}");
    let found = caller(&phone, json!({})).adapter.check().await;
    assert!(found.as_ref().is_ok_and(|text| text.contains("responds")), "{found:?}");
}

#[tokio::test]
#[ignore = "needs PJSIP and espeak-ng"]
async fn heavy_a_phone_is_called_over_tls() {
    let keys = Path::new(env!("CARGO_MANIFEST_DIR")).join("../smpp/tests/keys");
    let authority = std::fs::read_to_string(keys.join("ca.pem")).unwrap();
    let mut phone = Phone::start("tls", &["200", "-", "0", keys.to_str().unwrap()]);
    let stranger = caller(&phone, json!({ "host": "localhost", "transport": "tls", "timeout_seconds": 3 }));
    let outcome = stranger.send().await;
    assert_eq!(short(&outcome).0, "connection", "an untrusted certificate: {outcome:?}");
    let caller = caller(&phone, json!({ "host": "localhost", "transport": "tls", "tls_ca": authority, "timeout_seconds": 3 }));
    let outcome = caller.send().await;
    assert!(matches!(outcome, Outcome::Accepted { .. }), "{outcome:?}");
    assert_eq!(phone.seen()["event"], "ended");
    assert!(phone.heard().lasts > 3.0);
}
