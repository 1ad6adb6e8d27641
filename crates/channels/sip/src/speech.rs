//! Generates speech with a program that reads text from standard input and writes a WAV file to standard output; caches the result.

use std::collections::HashMap;
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStdin, Command as Process};
use tokio::sync::{OnceCell, Semaphore};
use tokio::time::timeout;

use crate::{audio, language};

/// Reads all UTF-8 from standard input at once.
pub(crate) const ESPEAK: &str = "espeak-ng -b 1 --stdin --stdout -v {voice}";
/// Timeout of the program per text.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum output of the program: an hour at 22,050 samples per second.
const MOST_BYTES: u64 = 160_000_000;
/// Cached samples: 20 minutes, 19 MB.
const KEPT: usize = 20 * 60 * audio::RATE as usize;
/// Programs run at once: each uses a CPU.
const AT_ONCE: usize = 2;

/// A program and its arguments, in which `{voice}` is replaced by espeak-ng's name of the voice, and `{language}` by the language tag. Runs
/// without a shell.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Command(Vec<String>);

impl Command {
    /// Splits a line at its spaces; nothing if it is empty.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        (!words.is_empty()).then_some(Self(words))
    }

    fn wants_voice(&self) -> bool {
        self.0.iter().any(|word| word.contains("{voice}"))
    }

    /// The words for a language tag. Fails if it has no voice.
    fn words(&self, tag: &str) -> Result<Vec<String>, SpeechError> {
        // A tag must not look like a command-line option.
        if !tag.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') || tag.starts_with('-') {
            return Err(SpeechError::NoVoice(tag.to_owned()));
        }
        let voice = language::voice(tag);
        if voice.is_none() && self.wants_voice() {
            return Err(SpeechError::NoVoice(tag.to_owned()));
        }
        let fill = |word: &String| word.replace("{voice}", voice.unwrap_or_default()).replace("{language}", tag);
        Ok(self.0.iter().map(fill).collect())
    }
}

/// Why speech generation failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum SpeechError {
    /// The language is not spoken.
    #[error("no voice speaks {0:?}")]
    NoVoice(String),
    /// The program does not work.
    #[error("the program for speech {0}")]
    Program(String),
}

/// Cache key of generated speech.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key {
    words: Vec<String>,
    text: String,
}

type Sound = Arc<[i16]>;

#[derive(Debug, Default)]
struct Kept {
    /// With the time of its last use.
    pieces: HashMap<Key, (u64, Arc<OnceCell<Sound>>)>,
    uses: u64,
}

impl Kept {
    /// The place of a piece: empty, or with the sound in it.
    fn place(&mut self, key: &Key) -> Arc<OnceCell<Sound>> {
        self.uses += 1;
        let piece = self.pieces.entry(key.clone()).or_default();
        piece.0 = self.uses;
        Arc::clone(&piece.1)
    }

    /// Removes failures and least recently used entries until at most `most` samples are left. Entries in progress stay.
    fn shrink(&mut self, most: usize) {
        self.pieces.retain(|_, (_, place)| place.initialized() || Arc::strong_count(place) > 1);
        let length = |place: &OnceCell<Sound>| place.get().map_or(0, |sound| sound.len());
        let mut total: usize = self.pieces.values().map(|(_, place)| length(place)).sum();
        while total > most {
            let done = self.pieces.iter().filter(|(_, (_, place))| place.initialized());
            let Some(oldest) = done.min_by_key(|(_, (used, _))| *used).map(|(key, _)| key.clone()) else { return };
            total -= self.pieces.remove(&oldest).map_or(0, |(_, place)| length(&place));
        }
    }
}

/// Speaks, for all accounts.
#[derive(Debug)]
pub(crate) struct Speech {
    kept: Mutex<Kept>,
    running: Semaphore,
}

impl Default for Speech {
    fn default() -> Self {
        Self { kept: Mutex::default(), running: Semaphore::new(AT_ONCE) }
    }
}

impl Speech {
    /// Speaks `text` in the language of a tag (BCP 47), as telephone samples. Concurrent calls for the same text share one run.
    pub(crate) async fn say(&self, command: &Command, tag: &str, text: &str) -> Result<Sound, SpeechError> {
        let key = Key { words: command.words(tag)?, text: text.to_owned() };
        let place = self.kept.lock().place(&key);
        let made = place.get_or_try_init(|| self.make(&key)).await.cloned();
        drop(place);
        self.kept.lock().shrink(KEPT);
        made
    }

    async fn make(&self, key: &Key) -> Result<Sound, SpeechError> {
        let fault = |why: String| SpeechError::Program(format!("{:?} {why}", key.words[0]));
        let _running = self.running.acquire().await;
        let wav =
            timeout(PATIENCE, run(key)).await.map_err(|_| fault(format!("took more than {} s", PATIENCE.as_secs())))?.map_err(fault)?;
        let read = tokio::task::spawn_blocking(move || audio::read("audio/wav", &wav, u64::MAX)).await;
        let samples = read.map_err(|error| fault(error.to_string()))?.map_err(|why| fault(format!("did not write a WAV file: {why}")))?;
        if samples.is_empty() { Err(fault("wrote an empty recording".to_owned())) } else { Ok(samples.into()) }
    }
}

/// Runs the program and returns its output.
async fn run(key: &Key) -> Result<Vec<u8>, String> {
    let mut process = Process::new(&key.words[0]);
    // Without the server's environment, which can contain keys.
    process.args(&key.words[1..]).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("LANG", "C.UTF-8");
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = process.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let (Some(input), Some(output), Some(trouble)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
        return Err("has no pipes".to_owned());
    };
    let (mut output, mut trouble) = (output.take(MOST_BYTES), trouble.take(1_000));
    let (mut wav, mut words) = (Vec::new(), Vec::new());
    let (wrote, read, _) = tokio::join!(write(input, key.text.as_bytes()), output.read_to_end(&mut wav), trouble.read_to_end(&mut words));
    let status = child.wait().await.map_err(|error| error.to_string())?;
    if !status.success() {
        let words = String::from_utf8_lossy(&words);
        return Err(format!("failed ({status}): {}", words.lines().next().unwrap_or_default()));
    }
    wrote.and(read.map(drop)).map_err(|error| error.to_string()).map(|()| wav)
}

/// A program that does not need all of the text can exit before reading it.
async fn write(mut input: ChildStdin, text: &[u8]) -> io::Result<()> {
    match input.write_all(text).await {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn command(line: &str) -> Command {
        Command::parse(line).unwrap()
    }

    fn wav(folder: &tempfile::TempDir) -> String {
        let path = folder.path().join("a.wav");
        fs::write(&path, audio::tests::file(1, 1, 8_000, 16, &[1, 0, 2, 0])).unwrap();
        path.to_str().unwrap().to_owned()
    }

    #[tokio::test]
    async fn the_same_text_is_made_once_for_all_who_want_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = wav(&folder);
        let speech = Speech::default();
        let cat = command(&format!("cat {path}"));
        let (one, two) = tokio::join!(speech.say(&cat, "es-ES", "hola"), speech.say(&cat, "es-ES", "hola"));
        let one = one.unwrap();
        assert_eq!(*one, [1, 2]);
        assert!(Arc::ptr_eq(&one, &two.unwrap()));
        fs::remove_file(&path).unwrap();
        assert!(Arc::ptr_eq(&one, &speech.say(&cat, "es-ES", "hola").await.unwrap()), "kept");
        assert!(speech.say(&cat, "es-ES", "adios").await.is_err(), "another text is made, by a program that fails now");
        assert_eq!(speech.kept.lock().pieces.len(), 1, "what failed is not kept");
    }

    #[tokio::test]
    async fn text_goes_to_the_standard_input_and_never_to_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told");
        let script = folder.path().join("speak");
        fs::write(&script, format!("echo \"$@\" >{0}\nenv >>{0}\ncat >>{0}\ncat {1}\n", told.display(), wav(&folder))).unwrap();
        let line = format!("sh {} --voice={{voice}} {{language}} $(id)", script.display());
        let text = "`id` $(id) \"; rm -rf / #\n-f /etc/passwd é";
        Speech::default().say(&command(&line), "es-MX", text).await.unwrap();
        let told = fs::read_to_string(told).unwrap();
        let (words, rest) = told.split_once('\n').unwrap();
        assert_eq!(words, "--voice=es-419 es-MX $(id)");
        assert!(rest.ends_with(text), "{rest}");
        assert!(!rest.contains("HOME="), "the environment is not handed on: {rest}");
    }

    #[tokio::test]
    async fn faults_of_programs() {
        let speech = Speech::default();
        for (line, tag, wanted) in [
            ("/nonexistent/speak", "en", "cannot be started"),
            ("ls /nonexistent", "en", "No such file"),
            ("cat", "en", "did not write a WAV file"),
            ("cat --{voice}", "fil-PH", "no voice speaks \"fil-PH\""),
            ("cat {language}", "-rf", "no voice speaks \"-rf\""),
        ] {
            let fault = speech.say(&command(line), tag, "text").await.unwrap_err().to_string();
            assert!(fault.contains(wanted), "{fault}");
        }
        assert!(Command::parse("  ").is_none());
    }

    #[test]
    fn what_was_not_used_for_longest_is_forgotten_first() {
        let mut kept = Kept::default();
        let key = |text: &str| Key { words: vec![], text: text.to_owned() };
        for text in ["a", "b", "c"] {
            kept.place(&key(text)).set(vec![0; 10].into()).unwrap();
        }
        let _being_made = kept.place(&key("d"));
        kept.place(&key("a"));
        kept.shrink(20);
        let mut left: Vec<_> = kept.pieces.keys().map(|k| k.text.as_str()).collect();
        left.sort_unstable();
        assert_eq!(left, ["a", "c", "d"]);
    }
}
