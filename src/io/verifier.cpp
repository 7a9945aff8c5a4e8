// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "io/verifier.h"

#include "platform/level.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace ib::io {

Verifier::Verifier(platform::Executor& executor, VerifierOptions options)
    : executor_(executor), options_(std::move(options)), random_(options_.seed) {
  driver_.dispatch.fill(
      [](DeviceObject& device, IrpRef irp) { device.extension<Verifier>().send(std::move(irp)); });
  device_.set_extension(this);
}

Verifier::~Verifier() {
  IB_ASSERT(sent_.empty() && early_.size() == 0);
}

void Verifier::send(IrpRef irp) {
  if (fail_instead(irp)) return;
  // Close is not delayed: the end of a file cannot be undone, so it cannot be cancelled before its
  // drivers have seen it.
  if (irp->major == Major::Close || !waits()) return dispatch(std::move(irp));
  early_.park(std::move(irp));
  // Any of them will do; a cancelled one is gone, with its memory.
  executor_.post([this] {
    if (auto next = early_.take()) dispatch(*std::move(next));
  });
}

// Every other request of a code, so that a client that tries again succeeds.
bool Verifier::fail_instead(IrpRef& irp) {
  if (!options_.faults || irp->major != Major::DeviceControl || !options_.may_fail(irp->code)) {
    return false;
  }
  std::size_t& had = failed_[irp->code];
  if (had == kFaultStatuses.size()) return false;
  if (passed_.insert(irp->code).second) return false;
  passed_.erase(irp->code);
  const Status status = kFaultStatuses[had++];
  options_.report(name_of(*irp) + " is made to fail: " + status_text(status));
  std::move(irp).fail(status, "the verifier made this request fail");
  return true;
}

void Verifier::dispatch(IrpRef irp) {
  const std::uint32_t code = irp->major == Major::DeviceControl ? irp->code : 0;
  sent_.push_back({this, &*irp, code, {}});
  Sent& sent = sent_.back();
  sent.self = std::prev(sent_.end());
  DeviceObject& device = irp->file->device();
  const std::uint32_t outer = std::exchange(code_, code);
  call_driver(device, std::move(irp), &on_completed, &sent);
  code_ = outer;
}

bool Verifier::fails(std::string_view site) {
  if (!options_.faults || code_ == 0 || !options_.may_fail(code_)) return false;
  if (!sites_.emplace(code_, site).second) return false;
  options_.report(std::string(options_.code_name(code_)) + ": " + std::string(site) +
                  " is made to fail");
  return true;
}

void Verifier::on_completed(IrpRef irp, void* context) {
  auto& sent = *static_cast<Sent*>(context);
  Verifier& self = *sent.verifier;
  self.look_at(*irp);
  if (!self.waits()) return self.answer(sent, std::move(irp));
  auto held = std::make_shared<IrpRef>(std::move(irp));
  self.executor_.post([&self, &sent, held] { self.answer(sent, std::move(*held)); });
}

void Verifier::answer(Sent& sent, IrpRef irp) {
  sent_.erase(sent.self);
  std::move(irp).pass_up();
}

void Verifier::look_at(const Irp& irp) {
  const bool ok = irp.status == Status::Ok;
  const auto is_valid = [](const NativeHandle& handle) { return handle.valid(); };
  const bool handles = std::any_of(irp.out_handles.begin(), irp.out_handles.end(), is_valid);
  const char* wrong = nullptr;
  if (static_cast<std::size_t>(irp.status) >= kStatusCount) wrong = "ends with no known status";
  if (irp.out_size > irp.out.size()) wrong = "fills more than its output buffer";
  if (!ok && irp.reason.empty()) wrong = "fails without a reason";
  if (ok && !irp.reason.empty()) wrong = "succeeds, with a reason for its failure";
  // A rejection brings its reason and private data.
  const bool may_have_output = irp.status == Status::Disconnected;
  if (!ok && ((irp.out_size != 0 && !may_have_output) || handles)) wrong = "fails, but has output";
  if (current_level() != Level::Dispatch) wrong = "is completed at passive level";
  if (wrong != nullptr) found(name_of(irp) + " " + wrong);
}

void Verifier::found(const std::string& what) {
  ++findings_;
  options_.report("finding: " + what);
}

std::string Verifier::name_of(const Irp& irp) const {
  const std::string name = irp.major == Major::Create  ? "Create"
                           : irp.major == Major::Close ? "Close"
                                                       : options_.code_name(irp.code);
  const FileObject& file = *irp.file;
  return fmt::format("{} of pid {} to {}", name, file.client().pid, file.device().name());
}

std::vector<std::string> Verifier::under_way() const {
  std::vector<std::string> lines;
  for (const Sent& sent : sent_) {
    lines.push_back(name_of(*sent.irp) + " (driver " + sent.irp->file->device().driver().name +
                    ") is not answered");
  }
  return lines;
}

}  // namespace ib::io
