// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// softibd with --verify (docs/design/0007).
#include "drivers/diagnostics/code_name.h"
#include "drivers/soft_hca/handlers.h"
#include "softibd/daemon.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace ib::softib {
namespace {

using verbs::control::Code;

// How long teardowns, and the drivers of devices that leave, may take after the last connection.
constexpr Duration kLookAgain = std::chrono::milliseconds(10);
constexpr int kLooks = 300;

// No requests that destroy, and none of the tools. Without WaitEvent a client takes softibd for
// dead; the report of a poster has no answer that matters.
bool may_fail(std::uint32_t number) {
  const auto code = static_cast<Code>(number);
  static constexpr Code kNever[] = {Code::WaitEvent,      Code::RaiseEvent,     Code::TraceError,
                                    Code::DestroyChannel, Code::DestroyBacking, Code::Status,
                                    Code::TraceRead,      Code::Devices,        Code::ListNames};
  return !drivers::lets_go(code) &&
         std::find(std::begin(kNever), std::end(kNever), code) == std::end(kNever);
}

}  // namespace

void Daemon::build_verifier(drivers::SoftHcaOptions& options) {
  if (options_.verify == Verify::Off) return;
  io::VerifierOptions wanted;
  wanted.seed = options_.verify_seed;
  wanted.faults = options_.verify == Verify::Faults;
  wanted.may_fail = &may_fail;
  wanted.code_name = &drivers::code_name;
  wanted.report = [this](const std::string& line) {
    devices_->tree().core().trace.add("verify: " + line);
  };
  verifier_ = std::make_unique<io::Verifier>(loop_, std::move(wanted));
  const auto fails = [this](std::string_view site) { return verifier_->fails(site); };
  options.fault = fails;
  verifying_memory_ = std::make_unique<VerifyingMemory>(memory_, fails);
  const char* faults = options_.verify == Verify::Faults ? "with faults, " : "";
  log_.info(fmt::format("verify: on, {}seed {}", faults, options_.verify_seed));
}

platform::DeviceMemoryHost& Daemon::memory_host() {
  if (verifying_memory_ != nullptr) return *verifying_memory_;
  return memory_;
}

void Daemon::send_down(io::IrpRef irp) {
  verifier_ != nullptr ? verifier_->send(std::move(irp)) : SessionHost::send_down(std::move(irp));
}

void Daemon::disconnect(io::FileObject& process) {
  report_leftovers(process);
  devices_->root().disconnect(process);
}

// No finding: a program may leave its objects to softibd.
void Daemon::report_leftovers(const io::FileObject& file) {
  if (verifier_ == nullptr) return;
  for (const std::string& line : devices_->root().left_behind(file)) {
    devices_->tree().core().trace.add("verify: left: " + line);
  }
}

void Daemon::look_for_leftovers(int tries) {
  std::vector<std::string> left = devices_->root().left_at_end();
  for (std::string& line : devices_->tree().kept_references()) left.push_back(std::move(line));
  if (!left.empty() && tries < kLooks) {
    idle_timer_ =
        loop_.at(loop_.now() + kLookAgain, [this, tries] { look_for_leftovers(tries + 1); });
    return;
  }
  for (const std::string& line : left) verifier_->found(line);
  for (const std::string& line : verifier_->under_way()) verifier_->found(line);
  const std::uint64_t findings = verifier_->findings();
  log_.info(fmt::format("verify: findings: {}", findings));
  if (findings != 0 && exit_ == DaemonExit::Ended) exit_ = DaemonExit::Findings;
  loop_.stop();
}

}  // namespace ib::softib
