// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/test/control_matrix_case_test.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <deque>
#include <utility>

namespace ib::drivers::test {
namespace {

using namespace verbs::control;

constexpr auto kMoment = std::chrono::milliseconds(5);  // no request that can go on needs longer
constexpr auto kLong = std::chrono::seconds(5);         // no test waits longer than that
constexpr std::uint64_t kLittleMemory = std::uint64_t{1} << 20;
constexpr std::uint64_t kLargePiece = std::uint64_t{64} << 20;

// Takes all that a request could still get, so that its own check refuses it.
class Shortage {
 public:
  explicit Shortage(MatrixWorld& w) : w_(w) {
    while (is_ok(Code::ChangeHca, w.hca_in(HcaAction::Add, ""))) {}
    for (std::uint16_t key = 0x9000;
         is_ok(Code::ChangePartition, w.partition_in(key, fmt::format("i{}", key).c_str(), false));
         ++key) {}
    while (w.p.root_call(Code::CreateChannel).status == Status::Ok) {}
    take_heap(w);
    Core& core = w.core();
    counts_ = hca_counts();
    hca_counts().fill(kMany);
    while (const McastGroupEntry* entry = core.mcasts.create()) groups_.push_back(entry->index);
    slots_used_ = std::exchange(core.slots_used, hca::kMaxSlots);
    core.resting_slots.swap(resting_slots_);
  }
  Shortage(const Shortage&) = delete;
  Shortage& operator=(const Shortage&) = delete;
  // Adds what the request has given back in the meantime.
  ~Shortage() {
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      counts_[kind] += hca_counts()[kind] - kMany;
    }
    hca_counts() = counts_;
    for (const std::uint32_t index : groups_) w_.core().mcasts.destroy(index);
    w_.core().slots_used = slots_used_;
    resting_slots_.insert(resting_slots_.end(), w_.core().resting_slots.begin(),
                          w_.core().resting_slots.end());
    w_.core().resting_slots.swap(resting_slots_);
  }

  // Takes all of the heap that is free now.
  static void take_heap(MatrixWorld& w) {
    if (!w.p_has_file || w.is_asleep) return;
    for (std::uint64_t size = kLargePiece; size >= Heap::kGranule; size /= 2) {
      while (w.p.call<DmOut>(Code::AllocDm, AllocDmIn{size, 0, 0}).status == Status::Ok) {}
    }
  }

 private:
  static constexpr std::uint32_t kMany = 1u << 24;  // above every limit

  template <class In>
  bool is_ok(Code code, const In& in) {
    return w_.tool.root_call<CaName>(code, in).status == Status::Ok;
  }
  Counts& hca_counts() { return w_.core().counts[w_.fabric.nodes()[0].hcas[0].index]; }

  MatrixWorld& w_;
  Counts counts_{};
  std::vector<std::uint32_t> groups_;
  std::uint32_t slots_used_ = 0;
  std::deque<std::uint32_t> resting_slots_;
};

bool needs_posters(Condition condition) {
  return condition >= Condition::Posters && condition <= Condition::EndedThen;
}
// Returns true for a condition that cannot arise unless the request waits.
bool needs_pending(Condition condition) {
  return (condition >= Condition::CancelledWhile && condition <= Condition::EndedThen) ||
         (condition >= Condition::AsleepCancelled);
}
bool is_close(Condition condition) {
  return condition == Condition::Closing || condition == Condition::ClosedWhile ||
         condition == Condition::ClosedThen;
}
bool is_asleep(Condition condition) {
  return condition >= Condition::Asleep;
}

class Run {
 public:
  Run(const Op& op, Condition condition, Form form)
      : op_(op),
        condition_(condition),
        form_(form),
        w_(condition == Condition::NothingLeft ? kLittleMemory : 0),
        call_(op.prepare(w_)) {
    call_->code = op.code;
    if (call_->file == nullptr) {
      const auto hca = hca_operations();
      const bool of_hca = &op >= hca.data() && &op < hca.data() + hca.size();
      call_->file = of_hca ? &w_.p.file() : &w_.p.zero();
    }
  }

  Outcome run() {
    if (!applies()) return finish("-");
    set_up();
    issue();
    const bool pended = !call_->done();
    if (needs_pending(condition_) && !pended) return finish("-");
    {
      const LevelGuard dispatch(Level::Dispatch);
      happen();
    }
    std::string how;
    if (!call_->done()) how = "later ";
    w_.executor.advance(kMoment);
    if (!call_->done()) how = "waits, ";
    let_go();
    w_.executor.advance(kLong);
    EXPECT_TRUE(call_->done()) << "the request is lost";
    if (!call_->done()) return finish("lost");
    return finish(how + status_name(call_->irp.status));
  }

 private:
  bool applies() const {
    return (condition_ != Condition::WrongInput || call_->has_input()) &&
           (condition_ != Condition::SmallOutput || call_->has_output()) &&
           (!is_close(condition_) || w_.p_has_file);
  }

  void set_up() {
    if (condition_ == Condition::NothingLeft) shortage_ = std::make_unique<Shortage>(w_);
    if (condition_ == Condition::SystemRefuses) {
      w_.host.refuses = true;
      Shortage::take_heap(w_);
    }
    if (is_asleep(condition_)) others_.push_back(power(PowerState::Sleep));
    const bool removed =
        condition_ == Condition::Removed || condition_ == Condition::AsleepRemovedBefore;
    if (removed) others_.push_back(eject());
    w_.executor.advance(kMoment);
    if (needs_posters(condition_)) w_.poster_enters_or_leaves();
    if (condition_ == Condition::Closing) others_.push_back(close());
    const bool ended = condition_ == Condition::Ended || condition_ == Condition::Ending;
    if (ended) w_.root->disconnect(w_.p.zero());
  }

  void issue() {
    const Buffers buffers = condition_ == Condition::WrongInput    ? Buffers::WrongInput
                            : condition_ == Condition::SmallOutput ? Buffers::SmallOutput
                                                                   : Buffers::Right;
    const LevelGuard dispatch(Level::Dispatch);
    io::IrpRef irp = call_->start();
    const bool cancelled =
        condition_ == Condition::CancelledBefore || condition_ == Condition::AsleepCancelledBefore;
    if (cancelled) irp->cancel();
    call_->send(form_, buffers, std::move(irp));
  }

  // A process ends here as in DaemonSession::on_closed().
  void happen() {
    switch (condition_) {
      case Condition::CancelledWhile:
      case Condition::AsleepCancelled: return call_->irp.cancel();
      case Condition::RemovedWhile:
      case Condition::AsleepRemoved: return others_.push_back(eject());
      case Condition::SleepWhile: return others_.push_back(power(PowerState::Sleep));
      case Condition::ClosedThen: poster_leaves(); [[fallthrough]];
      case Condition::ClosedWhile: return others_.push_back(close());
      case Condition::EndedThen: poster_leaves(); [[fallthrough]];
      case Condition::EndedWhile:
      case Condition::AsleepEnded: w_.root->disconnect(w_.p.zero()); return call_->irp.cancel();
      case Condition::Plain:
      case Condition::CancelledBefore:
      case Condition::CancelledAfter:
      case Condition::WrongInput:
      case Condition::SmallOutput:
      case Condition::NothingLeft:
      case Condition::SystemRefuses:
      case Condition::Removed:
      case Condition::Ended:
      case Condition::Posters:
      case Condition::Closing:
      case Condition::Ending:
      case Condition::Asleep:
      case Condition::AsleepCancelledBefore:
      case Condition::AsleepRemovedBefore: return;
    }
  }

  // Ends everything that the request may wait for.
  void let_go() {
    poster_leaves();
    if (is_asleep(condition_)) others_.push_back(power(PowerState::Working));
    w_.executor.advance(kMoment);
    const LevelGuard dispatch(Level::Dispatch);
    if (!call_->done() && op_.let_go != nullptr) op_.let_go(w_);
  }

  // A late cancellation has no effect, and the Irp can be used for the next request.
  void cancel_too_late() {
    const Status status = call_->irp.status;
    call_->irp.cancel();
    EXPECT_EQ(call_->irp.status, status);
    EXPECT_EQ(call_->completions, 1);
    call_->close_opened(w_);
    io::IrpQueue queue;
    queue.park(call_->irp.start([](io::Irp&, void*) {}, nullptr));
    EXPECT_EQ(call_->irp.status, Status::Pending);
    queue.cancel(call_->irp);
    call_->irp.status = status;
  }

  void poster_leaves() {
    if (w_.is_poster_inside()) w_.poster_enters_or_leaves();
  }
  std::unique_ptr<Request> close() {
    return w_.p.start(w_.p.file(), Code::Close, Nothing{}, io::Major::Close);
  }
  std::unique_ptr<Request> eject() {
    return w_.ask(Code::ChangeHca, MatrixWorld::hca_in(HcaAction::Eject));
  }
  std::unique_ptr<Request> power(PowerState state) {
    return w_.ask(Code::SetPower, MatrixWorld::power_in(state));
  }

  Outcome finish(std::string cell) {
    EXPECT_EQ(current_level(), Level::Passive) << "the level was not restored";
    Outcome outcome{std::move(cell), Status::Pending, 0, {}};
    if (applies() && call_->completions != 0) {
      EXPECT_EQ(call_->completions, 1);
      EXPECT_EQ(call_->level, Level::Dispatch);
      const io::Irp& irp = call_->irp;
      outcome.status = irp.status;
      outcome.information = irp.information;
      outcome.output.assign(call_->output().begin(), call_->output().end());
      EXPECT_EQ(irp.reason.empty(), irp.status == Status::Ok) << irp.reason;
      EXPECT_TRUE(irp.status == Status::Ok || irp.out_size == 0);
      if (condition_ == Condition::CancelledAfter) cancel_too_late();
    }
    tear_down();
    return outcome;
  }

  // Nothing may be left, wherever the request was when it ended.
  void tear_down() {
    shortage_.reset();
    w_.host.refuses = false;
    poster_leaves();
    others_.push_back(power(PowerState::Working));
    w_.executor.advance(kLong);
    EXPECT_TRUE(applies() == call_->done());
    for (const auto& other : others_) EXPECT_TRUE(other->done);
    call_->close_opened(w_);
    w_.p.exit();
    w_.peer.exit();
    w_.second.exit();
    w_.executor.advance(kLong);
    EXPECT_EQ(w_.objects(), 0u);
    EXPECT_EQ(w_.core().sessions.size(), 1u) << "there should be the tool only";
    EXPECT_EQ(w_.core().later.waiting_for_posters(), 0u);
  }

  const Op& op_;
  Condition condition_;
  Form form_;
  MatrixWorld w_;
  std::unique_ptr<Call> call_;
  std::unique_ptr<Shortage> shortage_;
  std::vector<std::unique_ptr<Request>> others_;
};

}  // namespace

const char* status_name(Status status) {
  static constexpr std::array<const char*, kStatusCount> kNames = {
      "Ok",           "Pending",       "InvalidParameter", "InvalidState",  "InsufficientResources",
      "Malformed",    "Cancelled",     "NotFound",         "AccessDenied",  "DeviceBusy",
      "NotSupported", "AlreadyExists", "Disconnected",     "LimitExceeded", "DeviceRemoved",
      "IoError",      "Timeout",       "TooManyHandles"};
  return kNames.at(static_cast<std::size_t>(status));
}

Outcome run_case(const Op& op, Condition condition, Form form) {
  const int handles = FakeHost::open_handles;
  Outcome outcome = Run(op, condition, form).run();
  EXPECT_EQ(FakeHost::open_handles, handles) << "descriptors are left";
  return outcome;
}

}  // namespace ib::drivers::test
