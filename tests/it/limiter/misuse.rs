//! Misuse is loud and changes nothing.

use tidegate::limiter::ReleaseError;

use super::{Waiter, limiter};

#[test]
fn a_release_of_nothing_is_an_error_and_leaves_the_limiter_as_it_was() {
    let limiter = limiter(2);
    let before = limiter.snapshot();
    assert_eq!(limiter.release(), Err(ReleaseError::NothingHeld));
    assert_eq!(limiter.release_many(7), Err(ReleaseError::NothingHeld));
    assert_eq!(limiter.snapshot(), before);
    assert_eq!(limiter.misuses(), 2);
}

#[test]
fn a_release_of_more_than_is_held_releases_none() {
    let limiter = limiter(5);
    for _ in 0..3 {
        limiter.try_acquire().unwrap().forget();
    }
    let refused = ReleaseError::MoreThanHeld { asked: 4, held: 3 };
    assert_eq!(limiter.release_many(4), Err(refused));
    let refused = ReleaseError::MoreThanHeld { asked: usize::MAX, held: 3 };
    assert_eq!(limiter.release_many(usize::MAX), Err(refused));
    assert_eq!(limiter.active(), 3);
    limiter.release_many(0).unwrap();
    assert_eq!(limiter.active(), 3);
    limiter.release_many(3).unwrap();
    assert_eq!(limiter.active(), 0);
}

#[test]
fn a_release_too_many_is_refused_while_somebody_waits_too() {
    let limiter = limiter(0);
    let _waiter = Waiter::waiting(&limiter);
    let before = limiter.snapshot();
    assert_eq!(limiter.release(), Err(ReleaseError::NothingHeld));
    assert_eq!((limiter.snapshot(), limiter.misuses()), (before, 1));
}

#[test]
fn b64_a_release_too_many_never_raises_the_capacity() {
    let limiter = limiter(2);
    let permit = limiter.try_acquire().unwrap();
    limiter.release().unwrap(); // steals the place of `permit`
    drop(permit); // which finds nothing to give back
    assert_eq!(limiter.misuses(), 1);
    let held: Vec<_> = std::iter::from_fn(|| limiter.try_acquire().ok()).collect();
    assert_eq!(held.len(), 2);
}

#[test]
fn errors_say_what_was_asked_and_what_stood_against_it() {
    let told = ReleaseError::MoreThanHeld { asked: 4, held: 3 }.to_string();
    assert_eq!(told, "4 permits were released while 3 are held");
    let told = limiter(1).set_capacity(3_000_000).unwrap_err().to_string();
    assert!(told.contains("3000000") && told.contains("2097151"), "{told}");
}
