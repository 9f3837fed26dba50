//! Random bits for the product: a ChaCha20 stream seeded by the operating system, never shared with a forked process.

use rand_chacha::ChaCha20Core;
use rand_core::block::Generator;
use rand_core::{SeedableRng, TryCryptoRng, TryRng};
use thiserror::Error;
use zeroize::Zeroize;

/// The operating system gave no random bytes.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "the operating system gave no random bytes ({cause}): no noise was drawn and nothing may be released; restore its \
     random source and ask again"
)]
pub struct EntropyError {
    /// What the operating system said.
    pub cause: getrandom::Error,
}

/// A cryptographic source of random bits for one process.
///
/// Bits: ChaCha20 under a 256-bit key from the operating system. Each refill of the buffer replaces the key by fresh
/// output and each word is erased when it is handed out: a later look at the memory does not give back earlier noise.
///
/// Fork: the process number is compared on every call, and the stream is thrown away and seeded anew when it changed.
/// That costs a system call; whoever draws many words takes [`OsEntropy::for_this_process`] first. A process that is
/// copied without a new number (a snapshot of a virtual machine, a child in its own process-number space) is not seen.
///
/// Not `Clone` and not `Debug`: two copies would repeat each other's noise, and the state is a secret. One per thread.
pub struct OsEntropy {
    stream: Stream<OperatingSystem>,
}

impl OsEntropy {
    /// Asks the operating system for a key.
    ///
    /// # Errors
    /// [`EntropyError`] when it gives none.
    pub fn new() -> Result<Self, EntropyError> {
        Ok(Self { stream: Stream::new(OperatingSystem)? })
    }

    /// Checks the process once and lends the stream for a batch of draws.
    ///
    /// The batch must not outlive a fork of the process by its own thread; safe Rust has no such call. The process is
    /// checked again at every refill of the buffer.
    ///
    /// # Errors
    /// [`EntropyError`] when the process is new and the operating system gives no key.
    pub fn for_this_process(&mut self) -> Result<ProcessStream<'_>, EntropyError> {
        self.stream.renew_if_forked()?;
        Ok(ProcessStream { stream: &mut self.stream })
    }
}

impl TryRng for OsEntropy {
    type Error = EntropyError;

    fn try_next_u32(&mut self) -> Result<u32, EntropyError> {
        self.for_this_process()?.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, EntropyError> {
        self.for_this_process()?.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        self.for_this_process()?.try_fill_bytes(bytes)
    }
}

impl TryCryptoRng for OsEntropy {}

/// An [`OsEntropy`] that was found to belong to this process, lent for a batch of draws.
pub struct ProcessStream<'a> {
    stream: &'a mut Stream<OperatingSystem>,
}

impl TryRng for ProcessStream<'_> {
    type Error = EntropyError;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, EntropyError> {
        Ok((self.stream.next_word()? >> 32) as u32)
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, EntropyError> {
        self.stream.next_word()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for chunk in bytes.chunks_mut(size_of::<u64>()) {
            let word = self.stream.next_word()?.to_le_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
        Ok(())
    }
}

impl TryCryptoRng for ProcessStream<'_> {}

/// What a stream needs from the world around it; a test puts its own in place.
trait Surroundings {
    /// Number of the running process.
    fn process(&mut self) -> u32;
    /// Fills a new key.
    fn fill_key(&mut self, key: &mut [u8; KEY_BYTES]) -> Result<(), EntropyError>;
}

struct OperatingSystem;

impl Surroundings for OperatingSystem {
    fn process(&mut self) -> u32 {
        std::process::id()
    }

    fn fill_key(&mut self, key: &mut [u8; KEY_BYTES]) -> Result<(), EntropyError> {
        getrandom::fill(key).map_err(|cause| EntropyError { cause })
    }
}

/// The stream: words `position..` of `words` are not handed out yet.
struct Stream<S: Surroundings> {
    surroundings: S,
    /// The process that the key was made for; none while there is no key.
    process: Option<u32>,
    generator: ChaCha20Core,
    words: [u64; BUFFER_WORDS],
    position: usize,
}

impl<S: Surroundings> Stream<S> {
    fn new(mut surroundings: S) -> Result<Self, EntropyError> {
        let process = Some(surroundings.process());
        let generator = seeded_generator(&mut surroundings)?;
        Ok(Self { surroundings, process, generator, words: [0; BUFFER_WORDS], position: BUFFER_WORDS })
    }

    /// Throws the stream away and seeds a new one if it was made by another process.
    fn renew_if_forked(&mut self) -> Result<(), EntropyError> {
        let process = Some(self.surroundings.process());
        if process != self.process {
            self.discard();
            self.generator = seeded_generator(&mut self.surroundings)?;
            // Last: if there was no key, the next call must ask for one again.
            self.process = process;
        }
        Ok(())
    }

    #[inline]
    fn next_word(&mut self) -> Result<u64, EntropyError> {
        if self.position >= BUFFER_WORDS {
            self.refill()?;
        }
        let word = std::mem::take(&mut self.words[self.position]);
        self.position += 1;
        Ok(word)
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) -> Result<(), EntropyError> {
        self.renew_if_forked()?;
        let mut block = [0u32; BLOCK_WORDS];
        for target in self.words.chunks_exact_mut(BLOCK_WORDS / 2) {
            self.generator.generate(&mut block);
            for (word, halves) in target.iter_mut().zip(block.chunks_exact(2)) {
                *word = u64::from(halves[0]) | u64::from(halves[1]) << 32;
            }
        }
        block.zeroize();
        let mut key = [0; KEY_BYTES];
        for (bytes, word) in key.chunks_exact_mut(size_of::<u64>()).zip(&mut self.words) {
            bytes.copy_from_slice(&std::mem::take(word).to_le_bytes());
        }
        self.generator = ChaCha20Core::from_seed(key);
        key.zeroize();
        self.position = KEY_BYTES / size_of::<u64>();
        Ok(())
    }

    /// Erases key and buffer.
    fn discard(&mut self) {
        self.process = None;
        self.words.zeroize();
        self.position = BUFFER_WORDS;
        // The generator has no erasing of its own; `black_box` keeps the overwriting from being optimised away.
        self.generator = ChaCha20Core::from_seed([0; KEY_BYTES]);
        std::hint::black_box(&mut self.generator);
    }
}

impl<S: Surroundings> Drop for Stream<S> {
    fn drop(&mut self) {
        self.discard();
    }
}

fn seeded_generator(surroundings: &mut impl Surroundings) -> Result<ChaCha20Core, EntropyError> {
    let mut key = [0; KEY_BYTES];
    surroundings.fill_key(&mut key)?;
    let generator = ChaCha20Core::from_seed(key);
    key.zeroize();
    Ok(generator)
}

/// Length of a ChaCha20 key.
const KEY_BYTES: usize = 32;
/// Words of 32 bits that the generator makes at a time.
const BLOCK_WORDS: usize = 64;
/// Words of 64 bits in the buffer: 4 KiB, so that the process check at a refill costs below 1 ns a word.
const BUFFER_WORDS: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::HashSet;

    /// A world whose process number and keys the test decides; keys count upwards from 1.
    #[derive(Default)]
    struct World {
        process: u32,
        keys_given: u8,
        refuses: bool,
    }

    impl Surroundings for &RefCell<World> {
        fn process(&mut self) -> u32 {
            self.borrow().process
        }

        fn fill_key(&mut self, key: &mut [u8; KEY_BYTES]) -> Result<(), EntropyError> {
            let mut world = self.borrow_mut();
            if world.refuses {
                return Err(EntropyError { cause: getrandom::Error::UNSUPPORTED });
            }
            world.keys_given += 1;
            *key = [world.keys_given; KEY_BYTES];
            Ok(())
        }
    }

    fn words(stream: &mut Stream<&RefCell<World>>, count: usize) -> Vec<u64> {
        stream.renew_if_forked().expect("this world does not refuse");
        (0..count).map(|_| stream.next_word().expect("this world does not refuse")).collect()
    }

    /// A child that kept its parent's number would draw its parent's noise.
    #[test]
    fn number_and_keys_are_those_of_the_operating_system() {
        assert_eq!(OperatingSystem.process(), std::process::id());
        let [mut one, mut other] = [[0; KEY_BYTES]; 2];
        OperatingSystem.fill_key(&mut one).expect("a system with randomness");
        OperatingSystem.fill_key(&mut other).expect("a system with randomness");
        // Equal once in 2^256.
        assert!(one != other && one != [0; KEY_BYTES] && other != [0; KEY_BYTES]);
    }

    /// Compiles only while there is one way to read `_`, that is while the type is neither `Clone` nor `Debug`.
    #[test]
    fn a_stream_can_be_neither_copied_nor_printed() {
        trait Ambiguous<Which> {
            fn holds() -> bool {
                true
            }
        }
        struct ByClone;
        struct ByDebug;
        impl<T: ?Sized> Ambiguous<()> for T {}
        impl<T: Clone> Ambiguous<ByClone> for T {}
        impl<T: std::fmt::Debug> Ambiguous<ByDebug> for T {}
        assert!(<OsEntropy as Ambiguous<_>>::holds());
        assert!(<ProcessStream<'static> as Ambiguous<_>>::holds());
    }

    #[test]
    fn a_forked_child_continues_with_other_words_than_its_parent() {
        // Two streams in equal worlds stand for parent and child: up to the fork their memory is the same.
        for before in [0, 1, 100, BUFFER_WORDS, 3 * BUFFER_WORDS + 7] {
            let (parent_world, child_world) = (RefCell::new(World::default()), RefCell::new(World::default()));
            let mut parent = Stream::new(&parent_world).expect("gives keys");
            let mut child = Stream::new(&child_world).expect("gives keys");
            assert_eq!(words(&mut parent, before), words(&mut child, before), "the same memory before the fork");
            child_world.borrow_mut().process = 1;
            let of_parent: HashSet<u64> = words(&mut parent, 3 * BUFFER_WORDS).into_iter().collect();
            let of_child = words(&mut child, 3 * BUFFER_WORDS);
            assert!(of_child.iter().all(|word| !of_parent.contains(word)), "fork after {before} words");
            assert_eq!((parent_world.borrow().keys_given, child_world.borrow().keys_given), (1, 2));
        }
    }

    #[test]
    fn a_batch_meets_a_new_process_at_the_next_refill() {
        let world = RefCell::new(World::default());
        let mut stream = Stream::new(&world).expect("gives keys");
        stream.next_word().expect("gives words");
        world.borrow_mut().process = 1;
        for _ in 0..BUFFER_WORDS {
            stream.next_word().expect("gives words");
        }
        assert_eq!(world.borrow().keys_given, 2);
    }

    #[test]
    fn no_word_is_given_while_the_system_refuses_a_key() {
        let world = RefCell::new(World { refuses: true, ..World::default() });
        assert!(Stream::new(&world).is_err());
        world.borrow_mut().refuses = false;
        let mut stream = Stream::new(&world).expect("gives keys now");
        words(&mut stream, 3);
        *world.borrow_mut() = World { process: 1, keys_given: 1, refuses: true };
        for _ in 0..3 {
            assert!(stream.renew_if_forked().is_err());
            assert!(stream.next_word().is_err(), "the parent's words are gone and there is no key for new ones");
        }
        // Not even a return of the old process number revives a stream without a key.
        world.borrow_mut().process = 0;
        assert!(stream.next_word().is_err());
        world.borrow_mut().refuses = false;
        assert!(stream.next_word().is_ok());
    }

    #[test]
    fn refills_replace_the_key_and_words_are_erased_when_given() {
        let world = RefCell::new(World::default());
        let mut stream = Stream::new(&world).expect("gives keys");
        let first_key = stream.generator.clone();
        words(&mut stream, 10);
        assert!(stream.generator != first_key);
        assert!(stream.words[..stream.position].iter().all(|&word| word == 0), "key material and given words");
        assert!(stream.words[stream.position..].iter().all(|&word| word != 0));
        let second_key = stream.generator.clone();
        words(&mut stream, BUFFER_WORDS);
        assert!(stream.generator != second_key);
    }

    #[test]
    fn discarding_erases_buffer_and_key() {
        let world = RefCell::new(World::default());
        let mut stream = Stream::new(&world).expect("gives keys");
        words(&mut stream, 10);
        stream.discard();
        assert_eq!(stream.words, [0; BUFFER_WORDS]);
        assert!(stream.generator == ChaCha20Core::from_seed([0; KEY_BYTES]));
        assert_eq!(stream.process, None);
    }

    #[test]
    fn the_stream_is_chacha20_under_keys_that_follow_each_other() {
        let world = RefCell::new(World::default());
        let mut stream = Stream::new(&world).expect("gives keys");
        let mut key = [1; KEY_BYTES];
        for _ in 0..3 {
            let mut reference = rand_chacha::ChaCha20Rng::from_seed(key);
            rand_core::Rng::fill_bytes(&mut reference, &mut key);
            for _ in KEY_BYTES / size_of::<u64>()..BUFFER_WORDS {
                assert_eq!(stream.next_word().expect("gives words"), rand_core::Rng::next_u64(&mut reference));
            }
        }
    }

    #[test]
    fn the_operating_system_seeds_two_streams_apart() {
        let mut one = OsEntropy::new().expect("the test machine has a random source");
        let mut other = OsEntropy::new().expect("the test machine has a random source");
        let mut bytes = ([0; 21], [0; 21]);
        one.try_fill_bytes(&mut bytes.0).expect("gives bytes");
        other.try_fill_bytes(&mut bytes.1).expect("gives bytes");
        assert_ne!(bytes.0, bytes.1);
        assert_ne!(bytes.0[16..], [0; 5], "the incomplete last word is filled");
        assert_ne!(one.try_next_u64(), one.try_next_u64());
        assert_ne!((one.try_next_u32(), one.try_next_u32()), (other.try_next_u32(), other.try_next_u32()));
    }

    #[test]
    fn the_error_says_what_to_do() {
        let error = EntropyError { cause: getrandom::Error::UNSUPPORTED };
        assert!(error.to_string().contains("nothing may be released"), "{error}");
    }
}
