// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of libc that install signal handlers (handlers.h).
#include "host_abi/preload/real.h"
#include "host_abi/streams/handlers.h"

#include <atomic>
#include <cerrno>

namespace ib::host_abi::stream_switch {
namespace {

using Handler = void(int);

inline constinit preload::Real<int(int, int)> real_siginterrupt{"siginterrupt"};
// Signals whose handlers by signal() shall not restart calls: siginterrupt() has said so.
constinit std::atomic<std::uint64_t> interrupting{0};

std::uint64_t bit_of(int signal) {
  return signal > 0 && signal < NSIG ? std::uint64_t{1} << (signal - 1) : 0;
}

Handler* install(int signal, Handler* handler, int flags) {
  struct sigaction action {};
  if (handler == SIG_ERR || bit_of(signal) == 0) {
    errno = EINVAL;
    return SIG_ERR;
  }
  action.sa_handler = handler;
  action.sa_flags = flags;
  if ((flags & SA_NODEFER) == 0) ::sigaddset(&action.sa_mask, signal);
  struct sigaction before {};
  return replace_action(signal, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

}  // namespace

extern "C" {

int streams_sigaction(int signal, const struct sigaction* wanted, struct sigaction* before)
    IB_STANDS_FOR("sigaction");
int streams_sigaction(int signal, const struct sigaction* wanted, struct sigaction* before) {
  return replace_action(signal, wanted, before);
}

int streams_own_sigaction(int signal, const struct sigaction* wanted, struct sigaction* before)
    IB_STANDS_FOR("__sigaction");
int streams_own_sigaction(int signal, const struct sigaction* wanted, struct sigaction* before) {
  return replace_action(signal, wanted, before);
}

Handler* streams_signal(int signal, Handler* handler) IB_STANDS_FOR("signal");
Handler* streams_signal(int signal, Handler* handler) {
  return install(signal, handler, (interrupting.load() & bit_of(signal)) != 0 ? 0 : SA_RESTART);
}

Handler* streams_bsd_signal(int signal, Handler* handler) IB_STANDS_FOR("bsd_signal");
Handler* streams_bsd_signal(int signal, Handler* handler) {
  return streams_signal(signal, handler);
}

Handler* streams_ssignal(int signal, Handler* handler) IB_STANDS_FOR("ssignal");
Handler* streams_ssignal(int signal, Handler* handler) {
  return streams_signal(signal, handler);
}

Handler* streams_sysv_signal(int signal, Handler* handler) IB_STANDS_FOR("sysv_signal");
Handler* streams_sysv_signal(int signal, Handler* handler) {
  return install(signal, handler, static_cast<int>(SA_RESETHAND) | SA_NODEFER);
}

Handler* streams_own_sysv_signal(int signal, Handler* handler) IB_STANDS_FOR("__sysv_signal");
Handler* streams_own_sysv_signal(int signal, Handler* handler) {
  return streams_sysv_signal(signal, handler);
}

int streams_siginterrupt(int signal, int interrupts) IB_STANDS_FOR("siginterrupt");
int streams_siginterrupt(int signal, int interrupts) {
  const int result = real_siginterrupt(signal, interrupts);
  if (result != 0) return result;
  if (interrupts != 0) {
    interrupting.fetch_or(bit_of(signal));
  } else {
    interrupting.fetch_and(~bit_of(signal));
  }
  return 0;
}

}  // extern "C"
}  // namespace ib::host_abi::stream_switch
