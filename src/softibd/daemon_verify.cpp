// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/daemon_verify.h"

#include "drivers/soft_hca/handlers.h"
#include "drivers/trace/code_name.h"
#include "verbs/services/open_service.h"

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
                                    Code::TraceRead,      Code::Devices,        Code::ListNames,
                                    Code::Resources};
  const bool ends_object = number == static_cast<std::uint32_t>(verbs::control::SaCode::Destroy) ||
                           number == static_cast<std::uint32_t>(verbs::control::CmCode::Destroy);
  return !drivers::lets_go(code) && !ends_object &&
         std::find(std::begin(kNever), std::end(kNever), code) == std::end(kNever);
}

}  // namespace

DaemonVerify::DaemonVerify(const DaemonOptions& options, platform::Executor& executor,
                           platform::DeviceMemoryHost& memory, DaemonLog& log)
    : executor_(executor),
      log_(log),
      verifier_(executor, verifier_options(options)),
      memory_(memory, faults()) {
  const char* faults = options.verify == Verify::Faults ? "with faults, " : "";
  log_.info(fmt::format("verify: on, {}seed {}", faults, options.verify_seed));
}

io::VerifierOptions DaemonVerify::verifier_options(const DaemonOptions& options) {
  io::VerifierOptions wanted;
  wanted.seed = options.verify_seed;
  wanted.faults = options.verify == Verify::Faults;
  wanted.may_fail = &may_fail;
  wanted.code_name = &drivers::code_name;
  wanted.report = [this](const std::string& line) {
    devices_->tree().core().trace.add("verify: " + line);
  };
  return wanted;
}

std::function<bool(std::string_view)> DaemonVerify::faults() {
  return [this](std::string_view site) { return verifier_.fails(site); };
}

void DaemonVerify::watch(DaemonDevices& devices) {
  devices_ = &devices;
  devices.access_layer().verifier = &verifier_.device();
}

void DaemonVerify::report_leftovers(const io::FileObject& file) {
  for (const std::string& line : devices_->root().left_behind(file)) {
    devices_->tree().core().trace.add("verify: left: " + line);
  }
}

void DaemonVerify::look_for_leftovers(const std::function<void(std::uint64_t)>& done) {
  look_again(kLooks, done);
}

void DaemonVerify::look_again(int looks_left, const std::function<void(std::uint64_t)>& done) {
  std::vector<std::string> left = devices_->root().left_at_end();
  for (std::string& line : devices_->tree().kept_references()) left.push_back(std::move(line));
  if (!left.empty() && looks_left > 0) {
    timer_ = executor_.at(executor_.now() + kLookAgain,
                          [this, looks_left, done] { look_again(looks_left - 1, done); });
    return;
  }
  for (const std::string& line : left) verifier_.found(line);
  for (const std::string& line : verifier_.under_way()) verifier_.found(line);
  log_.info(fmt::format("verify: findings: {}", findings()));
  done(findings());
}

}  // namespace ib::softib
