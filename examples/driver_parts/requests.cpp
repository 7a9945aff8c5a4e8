// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "requests.h"

#include <utility>

namespace parts {

void Requests::run(std::vector<Issue> issues, Done done) {
  if (ending_) return;
  waiting_.push_back({std::move(issues), std::move(done), 0});
  begin();
}

void Requests::end(std::vector<Issue> issues, std::function<void()> done) {
  ending_ = true;
  waiting_.clear();
  waiting_.push_back(
      {std::move(issues), [done = std::move(done)](Status, const std::string&) { done(); }, 0});
  orphan_ = under_way_;
  if (under_way_) return irp_.cancel();
  begin();
}

void Requests::begin() {
  if (under_way_ || waiting_.empty()) return;
  under_way_ = true;
  const Sequence& first = waiting_.front();
  first.issues[first.at](irp_.start(&answered, this));
}

void Requests::answered(ib::io::Irp& irp, void* context) {
  Requests& self = *static_cast<Requests*>(context);
  self.under_way_ = false;
  if (std::exchange(self.orphan_, false)) return self.begin();
  const Status status = irp.status;
  const std::string reason = irp.reason;
  Sequence& first = self.waiting_.front();
  const bool go_on = status == Status::Ok || self.ending_;
  if (go_on && ++first.at < first.issues.size()) return self.begin();
  const Done done = std::move(first.done);
  self.waiting_.pop_front();
  if (self.ending_) return done(status, reason);
  done(status, reason);
  self.begin();
}

}  // namespace parts
