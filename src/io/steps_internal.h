// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A loop whose body ends later: the building block of the PnP and power managers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace ib::io {

// Calls step(id, next) for one id after the other; the step calls next(true) to go on, at once or
// later, and next(false) to leave the loop. Then `then`. A step that calls back at once costs no
// stack.
class Steps : public std::enable_shared_from_this<Steps> {
 public:
  using Next = std::function<void(bool go_on)>;
  using Step = std::function<void(std::uint64_t id, Next next)>;

  static void run(std::vector<std::uint64_t> ids, Step step, std::function<void()> then) {
    std::shared_ptr<Steps> self(new Steps);
    self->ids_ = std::move(ids);
    self->step_ = std::move(step);
    self->then_ = std::move(then);
    self->loop();
  }

 private:
  Steps() = default;

  void loop() {
    looping_ = true;
    while (ready_ && at_ < ids_.size()) {
      ready_ = false;
      step_(ids_[at_++], [self = shared_from_this()](bool go_on) { self->on_next(go_on); });
    }
    looping_ = false;
    if (ready_) std::exchange(then_, nullptr)();
  }
  void on_next(bool go_on) {
    if (!go_on) at_ = ids_.size();
    ready_ = true;
    if (!looping_) loop();
  }

  std::vector<std::uint64_t> ids_;
  std::size_t at_ = 0;
  bool ready_ = true;  // the last step has called back
  bool looping_ = false;
  Step step_;
  std::function<void()> then_;
};

}  // namespace ib::io
