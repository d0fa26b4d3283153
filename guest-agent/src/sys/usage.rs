//! getrusage(2).

use std::io;

use super::check;

/// What this process and the children it has waited for have used, by the kernel's names.
pub fn own_usage() -> io::Result<Vec<(&'static str, f64)>> {
    let (own, children) = (usage(libc::RUSAGE_SELF)?, usage(libc::RUSAGE_CHILDREN)?);
    let ms = |time: libc::timeval| time.tv_sec as f64 * 1e3 + time.tv_usec as f64 / 1e3;
    let both = |of: fn(&libc::rusage) -> libc::c_long| (of(&own) + of(&children)) as f64;
    Ok(vec![
        ("user-ms", ms(own.ru_utime) + ms(children.ru_utime)),
        ("system-ms", ms(own.ru_stime) + ms(children.ru_stime)),
        ("minor-faults", both(|usage| usage.ru_minflt)),
        ("major-faults", both(|usage| usage.ru_majflt)),
        ("blocks-in", both(|usage| usage.ru_inblock)),
        ("blocks-out", both(|usage| usage.ru_oublock)),
        ("voluntary-switches", both(|usage| usage.ru_nvcsw)),
        ("involuntary-switches", both(|usage| usage.ru_nivcsw)),
    ])
}

fn usage(who: libc::c_int) -> io::Result<libc::rusage> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to live, writable memory of the right type.
    check(unsafe { libc::getrusage(who, usage.as_mut_ptr()) })?;
    // SAFETY: all-zero is a valid rusage, and getrusage has filled it in.
    Ok(unsafe { usage.assume_init() })
}
