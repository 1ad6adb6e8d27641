//! Converts recordings to telephone sound: one channel, 8,000 samples per second.

use audio_codec::CodecType;

use crate::keys::LEAD;
use crate::rtp::FRAME;

/// Samples a second on the line.
pub(crate) const RATE: u32 = 8_000;

/// Decodes a WAV file (RIFF; PCM of 8 or 16 bits, µ-law, A-law) or headerless sound of a self-describing MIME type: `audio/basic` (RFC 2046
/// §4.3) or `audio/L16` (RFC 4856 §2.1.21). Decodes nothing longer than a call of `most` seconds.
pub(crate) fn read(content_type: &str, bytes: &[u8], most: u64) -> Result<Vec<i16>, String> {
    if bytes.starts_with(b"RIFF") {
        return wav(bytes, most);
    }
    let mut parts = content_type.split(';').map(str::trim);
    let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
    match kind.as_str() {
        "audio/basic" | "audio/pcmu" => fits(bytes.len(), RATE, most).map(|()| decode(CodecType::PCMU, bytes)),
        "audio/pcma" => fits(bytes.len(), RATE, most).map(|()| decode(CodecType::PCMA, bytes)),
        "audio/l16" => {
            let named = |name: &str| parts.clone().find_map(|p| p.strip_prefix(name)?.parse().ok());
            let (rate, channels) = (named("rate=").ok_or("audio/L16 has no rate")?, named("channels=").unwrap_or(1));
            check(channels, rate, bytes.len() / 2, most)?;
            let samples: Vec<_> = bytes.as_chunks().0.iter().map(|pair| i16::from_be_bytes(*pair)).collect();
            Ok(to_line(&samples, channels, rate))
        }
        _ => Err(format!("{content_type:?} cannot be played; must be WAV (PCM of 8 or 16 bits, µ-law, A-law), audio/basic or audio/L16")),
    }
}

/// Whether a call of `most` seconds can carry so many samples, after the silence at its start.
pub(crate) fn fits(samples: usize, rate: u32, most: u64) -> Result<(), String> {
    let line = samples as u64 * u64::from(RATE) / u64::from(rate) + (LEAD * FRAME) as u64;
    if line <= most.saturating_mul(u64::from(RATE)) {
        return Ok(());
    }
    let tenths = line.div_ceil(u64::from(RATE) / 10);
    Err(format!("playing it takes {}.{} s; a call can last {most} s", tenths / 10, tenths % 10))
}

/// Whether so many samples, of all channels together, can be brought to the line.
fn check(channels: u32, rate: u32, samples: usize, most: u64) -> Result<(), String> {
    if !(4_000..=192_000).contains(&rate) || !(1..=8).contains(&channels) {
        return Err(format!("the sound has {rate} samples a second in {channels} channels; must be 4000 to 192000, in 1 to 8"));
    }
    fits(samples / channels as usize, rate, most)
}

fn decode(codec: CodecType, bytes: &[u8]) -> Vec<i16> {
    audio_codec::create_decoder(codec).decode(bytes)
}

/// Format of the sound in a WAV file (Multimedia Programming Interface and Data Specifications 1.0, §3).
struct Format {
    tag: u16,
    channels: u32,
    rate: u32,
    bits: u16,
}

impl Format {
    fn read(chunk: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u16::from_le_bytes(*chunk.get(at..)?.first_chunk()?));
        let rate = u32::from_le_bytes(*chunk.get(4..)?.first_chunk()?);
        let tag = match word(0)? {
            // "Extensible": the identifier of the format starts with the real tag.
            0xFFFE => word(24)?,
            tag => tag,
        };
        Some(Self { tag, channels: word(2)?.into(), rate, bits: word(14)? })
    }
}

fn wav(bytes: &[u8], most: u64) -> Result<Vec<i16>, String> {
    let mut rest = bytes.get(12..).unwrap_or_default();
    let mut format = None;
    while let Some((head, body)) = rest.split_first_chunk::<8>() {
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        // Programs that write to a pipe cannot know the length and write a very large one.
        let chunk = &body[..length.min(body.len())];
        match &head[..4] {
            b"fmt " => format = Format::read(chunk),
            b"data" => return sound(&format.ok_or("the WAV file has no format chunk")?, chunk, most),
            _ => {}
        }
        rest = body.get(length.saturating_add(length % 2)..).unwrap_or_default();
    }
    Err("the WAV file holds no sound".to_owned())
}

fn sound(format: &Format, data: &[u8], most: u64) -> Result<Vec<i16>, String> {
    check(format.channels, format.rate, data.len() / usize::from(format.bits / 8).max(1), most)?;
    let samples = match (format.tag, format.bits) {
        (1, 16) => data.as_chunks().0.iter().map(|pair| i16::from_le_bytes(*pair)).collect(),
        (1, 8) => data.iter().map(|byte| (i16::from(*byte) - 128) << 8).collect(),
        (7, 8) => decode(CodecType::PCMU, data),
        (6, 8) => decode(CodecType::PCMA, data),
        (tag, bits) => return Err(format!("the WAV file's format ({tag}, {bits} bits) cannot be played; must be PCM, µ-law or A-law")),
    };
    Ok(to_line(&samples, format.channels, format.rate))
}

/// One channel of the mean of all, at the line's rate.
fn to_line(samples: &[i16], channels: u32, rate: u32) -> Vec<i16> {
    let mean = |frame: &[i16]| (frame.iter().map(|s| i32::from(*s)).sum::<i32>() / channels as i32) as i16;
    let mono: Vec<_> = samples.chunks_exact(channels as usize).map(mean).collect();
    if rate == RATE { mono } else { audio_codec::resample(&mono, rate, RATE) }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    fn chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
        let padding = &[0][..body.len() % 2];
        [name, &(body.len() as u32).to_le_bytes()[..], body, padding].concat()
    }

    pub(crate) fn file(tag: u16, channels: u16, rate: u32, bits: u16, data: &[u8]) -> Vec<u8> {
        let format = [&tag.to_le_bytes()[..], &channels.to_le_bytes(), &rate.to_le_bytes(), &[0; 6], &bits.to_le_bytes()].concat();
        [b"RIFF....WAVE".to_vec(), chunk(b"LIST", b"odd"), chunk(b"fmt ", &format), chunk(b"data", data)].concat()
    }

    fn pcm(samples: &[i16]) -> Vec<u8> {
        samples.iter().flat_map(|s| s.to_le_bytes()).collect()
    }

    #[test]
    fn files_of_all_kinds() {
        assert_eq!(read("", &file(1, 1, 8_000, 16, &pcm(&[1, -2, 3])), 10).unwrap(), [1, -2, 3]);
        assert_eq!(read("", &file(1, 2, 8_000, 16, &pcm(&[10, 20, -30, -10])), 10).unwrap(), [15, -20]);
        assert_eq!(read("", &file(1, 1, 8_000, 8, &[128, 255, 0]), 10).unwrap(), [0, 127 << 8, -128 << 8]);
        assert_eq!(read("", &file(7, 1, 8_000, 8, &[0xFF, 0x80]), 10).unwrap(), [0, 32_124]);
        assert_eq!(read("", &file(6, 1, 8_000, 8, &[0xD5]), 10).unwrap(), [8]);
        let second = read("", &file(1, 1, 22_050, 16, &pcm(&[0; 22_050])), 10).unwrap().len();
        assert!((7_900..=8_100).contains(&second), "a second is {second} samples");
        assert_eq!(read("audio/basic", &[0xFF; 3], 10).unwrap(), [0; 3]);
        assert_eq!(read("audio/L16; rate=8000; channels=1", &[0, 1, 0xFF, 0xFE], 10).unwrap(), [1, -2]);
    }

    #[test]
    fn a_length_that_nobody_knew_ends_with_the_file() {
        let mut bytes = file(1, 1, 8_000, 16, &pcm(&[5, 6]));
        let at = bytes.len() - 8;
        bytes[at..at + 4].copy_from_slice(&0x7FFF_F000_u32.to_le_bytes());
        assert_eq!(read("", &bytes, 10).unwrap(), [5, 6]);
    }

    #[test]
    fn what_cannot_be_played_is_told() {
        for (content_type, bytes, text) in [
            ("audio/mpeg", b"ID3".to_vec(), "\"audio/mpeg\" cannot be played"),
            ("audio/wav", file(3, 1, 8_000, 32, &[]), "format (3, 32 bits)"),
            ("audio/wav", file(1, 1, 0, 16, &[]), "0 samples a second"),
            ("audio/wav", file(1, 0, 8_000, 16, &[]), "in 0 channels"),
            ("audio/wav", b"RIFF....WAVE".to_vec(), "holds no sound"),
            ("audio/wav", [b"RIFF....WAVE".to_vec(), chunk(b"data", &[1])].concat(), "no format chunk"),
            ("audio/L16", vec![0], "has no rate"),
        ] {
            let fault = read(content_type, &bytes, 10).unwrap_err();
            assert!(fault.contains(text), "{fault}");
        }
    }

    #[test]
    fn what_a_call_cannot_carry_is_told_by_its_size() {
        for (content_type, bytes) in [
            ("audio/wav", file(1, 1, 8_000, 16, &[0; 160_000])),
            ("audio/wav", file(1, 2, 22_050, 16, &[0; 882_000])),
            ("audio/wav", file(6, 1, 4_000, 8, &[0; 40_000])),
            ("audio/basic", vec![0; 80_000]),
            ("audio/pcma", vec![0; 80_000]),
            ("audio/L16; rate=16000; channels=2", vec![0; 640_000]),
        ] {
            assert_eq!(read(content_type, &bytes, 10).unwrap_err(), "playing it takes 10.5 s; a call can last 10 s", "{content_type}");
            assert!(read(content_type, &bytes, 11).is_ok(), "{content_type}");
        }
        // The silence at the start is half a second.
        assert!(fits(76_000, RATE, 10).is_ok());
        assert_eq!(fits(76_001, RATE, 10).unwrap_err(), "playing it takes 10.1 s; a call can last 10 s");
    }

    proptest! {
        #[test]
        fn no_file_breaks_the_parser(tail in proptest::collection::vec(any::<u8>(), 0..200), known in any::<bool>()) {
            let bytes = if known { [&b"RIFF....WAVEfmt \x10\0\0\0\x01\0"[..], &tail].concat() } else { [&b"RIFF"[..], &tail].concat() };
            let _ = read("audio/wav", &bytes, 10);
        }
    }
}
