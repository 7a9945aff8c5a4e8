// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The handler of fatal signals: finds the module of the faulting code by the program headers, and
// writes the lines with nothing but system calls.
#include "linux/server/crash_report.h"

#include "base/sanitizer.h"
#include "linux/server/printed_output.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <string_view>
#include <utility>

namespace ib::os {

// Written by threads that load, read by the handler: the range counts once `end` is set.
struct ModulePlace {
  std::atomic<bool> taken{false};
  std::atomic<long> loader{0};  // the thread that loads it; 0: none does
  std::atomic<std::uintptr_t> begin{0};
  std::atomic<std::uintptr_t> end{0};
  std::array<char, 64> name{};
  std::array<char, 512> path{};
};

namespace {

constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr std::size_t kMostModules = 64;
constexpr int kMostCallers = 64;
constexpr std::size_t kStackBytes = std::size_t{64} << 10;

constinit std::array<ModulePlace, kMostModules> modules;
constinit std::array<char, PATH_MAX> log_path{};
constinit std::chrono::seconds local_time{0};  // its distance from UTC
constinit ModulePlace program;                 // softibd itself
alignas(16) constinit std::array<std::byte, kStackBytes> handler_stack{};

// Text that is put together without allocation, as a handler of signals may.
class Line {
 public:
  Line& add(std::string_view text) {
    const std::size_t size = std::min(text.size(), text_.size() - 1 - size_);
    std::memcpy(text_.data() + size_, text.data(), size);
    size_ += size;
    return *this;
  }
  Line& number(std::uint64_t value, std::size_t digits = 1, unsigned base = 10) {
    std::array<char, 20> reversed{};
    std::size_t count = 0;
    for (; value != 0 || count < digits; value /= base) {
      reversed[count++] = "0123456789abcdef"[value % base];
    }
    std::reverse(reversed.begin(), reversed.begin() + static_cast<std::ptrdiff_t>(count));
    return add({reversed.data(), count});
  }
  Line& hex(std::uint64_t value) { return add("0x").number(value, 1, 16); }
  void write_to(int file) {
    text_[size_] = '\n';  // add() leaves room for it
    (void)!::write(file, text_.data(), size_ + 1);
  }

 private:
  std::array<char, 1024> text_{};
  std::size_t size_ = 0;
};

// The code and data that is mapped at `base`.
struct Range {
  std::uintptr_t base = 0;
  std::uintptr_t end = 0;
};

int read_range(dl_phdr_info* info, std::size_t, void* context) {
  auto& range = *static_cast<Range*>(context);
  if (info->dlpi_addr != range.base) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    range.end = std::max<std::uintptr_t>(range.end, range.base + part.p_vaddr + part.p_memsz);
  }
  return 1;
}

// The program comes first.
int read_program(dl_phdr_info* info, std::size_t size, void* context) {
  static_cast<Range*>(context)->base = info->dlpi_addr;
  return read_range(info, size, context);
}

// As the lines of the log begin.
void add_time(Line& line) {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::chrono::sys_seconds at{std::chrono::seconds(now.tv_sec) + local_time};
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss time{at - day};
  const auto part = [&line](auto value, const char* after, std::size_t digits = 2) {
    line.number(static_cast<std::uint64_t>(value), digits).add(after);
  };
  part(int{date.year()}, "-", 4);
  part(unsigned{date.month()}, "-");
  part(unsigned{date.day()}, " ");
  part(time.hours().count(), ":");
  part(time.minutes().count(), ":");
  part(time.seconds().count(), ".");
  part(now.tv_nsec / 1'000'000, " C ", 3);
}

std::string_view name_of(int signal) {
  switch (signal) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGILL: return "SIGILL";
    case SIGFPE: return "SIGFPE";
    case SIGABRT: return "SIGABRT";
    default: return "a signal";
  }
}

std::uintptr_t code_address(const ucontext_t& context) {
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return context.uc_mcontext.pc;
#else
  static_cast<void>(context);
  return 0;
#endif
}

bool has(const ModulePlace& place, std::uintptr_t address) {
  return address < place.end.load(std::memory_order_acquire) && address >= place.begin.load();
}

const ModulePlace* module_at(std::uintptr_t address) {
  const auto* found = std::find_if(modules.begin(), modules.end(),
                                   [address](const auto& place) { return has(place, address); });
  return found != modules.end() ? found : nullptr;
}

// That this thread is loading; its range is not known yet.
const ModulePlace* module_being_loaded() {
  const long self = ::syscall(SYS_gettid);
  const auto* found = std::find_if(modules.begin(), modules.end(), [self](const auto& place) {
    return place.loader.load(std::memory_order_acquire) == self;
  });
  return found != modules.end() ? found : nullptr;
}

// "driver ping (/x/libping.so + 0x1139)"
void add_place(Line& line, const ModulePlace& module, std::uintptr_t address) {
  line.add("driver ").add(module.name.data()).add(" (").add(module.path.data());
  if (address != 0) line.add(" + ").hex(address - module.begin.load());
  line.add(")");
}

// The first caller that is code of a module. Reads the stack, which may be what is broken.
void report_callers(int file) {
  std::array<void*, kMostCallers> callers{};
  const int count = ::backtrace(callers.data(), kMostCallers);
  for (int i = 0; i < count; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(callers[static_cast<std::size_t>(i)]);
    const ModulePlace* module = module_at(address);
    if (module == nullptr) continue;
    Line line;
    add_time(line);
    line.add("crashed: called by ");
    add_place(line, *module, address);
    return line.write_to(file);
  }
}

// The last output, such as a failed assertion, each line with the time of the crash.
void report_printed(int file) {
  std::array<char, 4096> text{};
  const int pipe = printed_output_pipe();
  const ssize_t got = pipe >= 0 ? ::read(pipe, text.data(), text.size()) : 0;
  std::string_view rest(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    Line line;
    add_time(line);
    line.add("printed: ").add(rest.substr(0, end)).write_to(file);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

void report(int signal, const siginfo_t& info, const ucontext_t& context) {
  const int file = ::open(log_path.data(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  report_printed(file);
  const std::uintptr_t code = code_address(context);
  const ModulePlace* module = module_at(code);
  const ModulePlace* loading = module == nullptr ? module_being_loaded() : nullptr;
  Line line;
  add_time(line);
  line.add("crashed: ").add(name_of(signal));
  const bool is_own = info.si_code > 0 || info.si_pid == ::getpid();
  if (!is_own) {
    line.add(" from pid ").number(static_cast<std::uint64_t>(info.si_pid));
  } else if (signal != SIGABRT) {
    line.add(" at address ").hex(reinterpret_cast<std::uintptr_t>(info.si_addr));
  }
  if (module != nullptr) {
    add_place(line.add(" in "), *module, code);
  } else if (loading != nullptr) {
    add_place(line.add(" while it loads "), *loading, 0);
  } else if (has(program, code)) {
    line.add(" in softibd + ").hex(code - program.begin.load());
  } else {
    line.add(" in a library, at ").hex(code);
  }
  line.write_to(file);
  if (is_own && module == nullptr && loading == nullptr) report_callers(file);
}

// The signal's own action is in place again: a fault repeats itself, and a second one in here ends
// the process.
void on_signal(int signal, siginfo_t* info, void* context) {
  report(signal, *info, *static_cast<const ucontext_t*>(context));
  if (info->si_code <= 0) (void)::raise(signal);
}

template <std::size_t kSize>
void copy_text(std::string_view from, std::array<char, kSize>& to) {
  to = {};
  from.copy(to.data(), kSize - 1);
}

}  // namespace

ModuleRecord::ModuleRecord(const std::string& name, const std::string& path) {
  auto* const found = std::find_if(modules.begin(), modules.end(),
                                   [](ModulePlace& place) { return !place.taken.exchange(true); });
  place_ = found != modules.end() ? found : nullptr;
  if (place_ == nullptr) return;
  copy_text(name, place_->name);
  copy_text(path, place_->path);
  place_->loader.store(::syscall(SYS_gettid), std::memory_order_release);
}

ModuleRecord::ModuleRecord(ModuleRecord&& other) noexcept
    : place_(std::exchange(other.place_, nullptr)) {}

ModuleRecord::~ModuleRecord() {
  if (place_ == nullptr) return;
  place_->loader = 0;
  place_->end = 0;
  place_->taken.store(false, std::memory_order_release);
}

void ModuleRecord::on_loaded(void* handle) {
  if (place_ == nullptr) return;
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0) {
    Range range{map->l_addr, 0};
    ::dl_iterate_phdr(&read_range, &range);
    place_->begin = range.base;
    place_->end.store(range.end, std::memory_order_release);
  }
  place_->loader = 0;
}

void report_crashes_to(const std::string& log) {
  if (IB_ADDRESS_SANITIZER != 0 || IB_THREAD_SANITIZER != 0) return;
  copy_text(log, log_path);
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  local_time = std::chrono::seconds(local.tm_gmtoff);
  Range range;
  ::dl_iterate_phdr(&read_program, &range);
  program.begin = range.base;
  program.end = range.end;
  // Its first call loads the unwinder, which a handler must not do.
  void* caller = nullptr;
  ::backtrace(&caller, 1);
  // For a stack that is at its end.
  stack_t stack{};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  ::sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_sigaction = &on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | static_cast<int>(SA_RESETHAND);
  ::sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) ::sigaction(signal, &action, nullptr);
}

}  // namespace ib::os
