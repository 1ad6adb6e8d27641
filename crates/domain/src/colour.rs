//! Colours of projects, and whether text in them can be read.

use std::fmt;

/// The least contrast of text and its background, by WCAG 2.2, level AA.
pub const READABLE: f64 = 4.5;

/// Steps from a colour to black or white.
const STEPS: u8 = 64;

/// An opaque colour in sRGB: red, green and blue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Colour([u8; 3]);

impl Colour {
    pub const BLACK: Self = Self([0; 3]);
    pub const WHITE: Self = Self([255; 3]);

    pub const fn rgb(red: u8, green: u8, blue: u8) -> Self {
        Self([red, green, blue])
    }

    /// Parses `#rrggbb`, in upper or lower case.
    pub fn parse(text: &str) -> Option<Self> {
        Self::parse_hex(text.strip_prefix('#')?)
    }

    /// Parses `rrggbb`, in upper or lower case.
    pub fn parse_hex(text: &str) -> Option<Self> {
        if text.len() != 6 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let [_, red, green, blue] = u32::from_str_radix(text, 16).ok()?.to_be_bytes();
        Some(Self([red, green, blue]))
    }

    /// Returns `rrggbb` in lower case.
    pub fn hex(self) -> String {
        self.to_string().split_off(1)
    }

    /// Returns the contrast with another colour: 1 to 21.
    pub fn contrast(self, other: Self) -> f64 {
        let (one, two) = (self.luminance(), other.luminance());
        (one.max(two) + 0.05) / (one.min(two) + 0.05)
    }

    /// Returns black or white, whichever has more contrast: at least 4.58, for every colour.
    pub fn text(self) -> Self {
        if self.contrast(Self::BLACK) > self.contrast(Self::WHITE) { Self::BLACK } else { Self::WHITE }
    }

    /// Returns the colour as it is readable on a background: mixed with as little black or white as that takes.
    pub fn readable_on(self, background: Self) -> Self {
        let end = background.text();
        let mixed = (0..=STEPS).map(|step| self.mixed(end, step));
        mixed.into_iter().find(|colour| colour.contrast(background) >= READABLE).unwrap_or(end)
    }

    /// Mixes the colour with `step` of [`STEPS`] parts of another one.
    fn mixed(self, other: Self, step: u8) -> Self {
        let part = |at: usize| {
            let (from, to, step, all) = (u32::from(self.0[at]), u32::from(other.0[at]), u32::from(step), u32::from(STEPS));
            u8::try_from((from * (all - step) + to * step) / all).unwrap_or(u8::MAX)
        };
        Self([part(0), part(1), part(2)])
    }

    /// Relative luminance, by WCAG 2.2: 0 for black, 1 for white.
    fn luminance(self) -> f64 {
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        let [red, green, blue] = self.0.map(linear);
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
}

/// Writes `#rrggbb` in lower case.
impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_six_hex_digits_are_a_colour() {
        assert_eq!(Colour::parse("#2747C7").map(|colour| (colour.to_string(), colour.hex())), Some(("#2747c7".into(), "2747c7".into())));
        for text in ["", "#", "2747c7", "#2747c", "#2747c77", "#2747cg", "#+747c7", "# 747c7", "#fff", "red", "#ééé", "#2747c7;"] {
            assert_eq!(Colour::parse(text), None, "{text}");
        }
    }

    #[test]
    fn contrast_is_that_of_wcag() {
        assert!((Colour::BLACK.contrast(Colour::WHITE) - 21.0).abs() < 1e-9);
        let grey = Colour::parse("#767676").expect("a colour");
        assert!((4.54..4.55).contains(&grey.contrast(Colour::WHITE)), "the lightest grey that is readable on white");
        assert!((Colour::WHITE.contrast(Colour::WHITE) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn text_is_readable_on_every_colour_and_every_colour_can_be_made_readable() {
        let sheets = [Colour::WHITE, Colour::rgb(0x1b, 0x1a, 0x17), Colour::rgb(119, 119, 119)];
        let parts = || (0..=255).step_by(15);
        for (red, green, blue) in parts().flat_map(|red| parts().flat_map(move |green| parts().map(move |blue| (red, green, blue)))) {
            let colour = Colour::rgb(red, green, blue);
            assert!(colour.contrast(colour.text()) >= READABLE, "{colour}");
            for sheet in sheets {
                assert!(colour.readable_on(sheet).contrast(sheet) >= READABLE, "{colour} on {sheet}");
            }
        }
        let blue = Colour::rgb(0x27, 0x47, 0xc7);
        assert_eq!((blue.text(), blue.readable_on(Colour::WHITE)), (Colour::WHITE, blue), "a readable colour stays");
        assert_eq!(Colour::rgb(0xff, 0xd5, 0x00).text(), Colour::BLACK);
    }
}
