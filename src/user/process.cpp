// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "user/process.h"

#include "base/buffers.h"
#include "user/hca.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ib::user {

namespace {

// Queue pairs with waiting work requests take turns, so that those that wait for the same receives
// all advance. How many requests one may run in its turn, and how often all get one before the
// caller goes on with its own work.
constexpr std::uint32_t kTurn = 16;
constexpr std::uint32_t kRounds = 64;
constexpr Duration kStoresLeave = std::chrono::milliseconds(10);

thread_local std::string reason_of_thread;

class MappedArena final : public hca::ArenaFile {
 public:
  explicit MappedArena(platform::MappedFile& file) : file_(file) {}

 protected:
  std::uint64_t query_size() override { return std::min(file_.file_size(), file_.size()); }

 private:
  platform::MappedFile& file_;
};

hca::Path path_from(const std::string& setting) {
  if (setting == "adopted") return hca::Path::Adopted;
  if (setting == "process_vm") return hca::Path::ProcessVm;
  if (setting == "bounce") return hca::Path::Bounce;
  return hca::Path::Auto;
}

}  // namespace

const std::string& last_reason() {
  return reason_of_thread;
}

Status failed(Status status, std::string reason) {
  reason_of_thread = std::move(reason);
  return status;
}

Result<std::unique_ptr<Process>> Process::attach(platform::ClientHost& host,
                                                 const ProcessOptions& options, EventSink& events,
                                                 std::string& reason) {
  std::unique_ptr<Process> process(new Process(host, events));
  const Status status = process->start(options, reason);
  if (status != Status::Ok) return failed(status, reason);
  return std::unique_ptr<Process>(std::move(process));
}

Status Process::start(const ProcessOptions& options, std::string& reason) {
  pid_ = host_.pid();
  number_ = host_.process_number();
  auto main = host_.connect(reason);
  if (!main) return main.error();
  main_ = *std::move(main);
  auto poster = host_.connect(reason);
  if (!poster) return poster.error();
  auto events = host_.connect(reason);
  if (!events) return events.error();
  event_channel_ = *std::move(events);

  control::AttachIn in;
  put_text(in.node, options.node);
  put_text(in.program, options.program);
  platform::ControlReply reply =
      main_->call(static_cast<std::uint32_t>(control::Code::Attach), 0,
                  std::as_bytes(std::span(&in, 1)), std::as_writable_bytes(std::span(&info_, 1)));
  if (reply.status != Status::Ok) {
    reason = reply.reason;
    return reply.status;
  }
  if (!reply.handles[0].valid() || reply.out_size < sizeof info_ ||
      info_.arena_size != hca::kArenaSpace || info_.slot >= hca::kMaxSlots) {
    reason = "softibd answered Attach in a way this library does not understand (versions differ?)";
    return Status::Malformed;
  }
  IB_CHECK(map_arena(std::move(reply.handles[0]), reason));
  const hca::Arena arena(mapping_->base(), *arena_file_);
  if (!host_.barriers().join()) {
    // A poster that was past its check before this store sees it at the latest when its own stores
    // leave its core, which takes nanoseconds.
    arena.header().fenced_entries.store(1, std::memory_order_seq_cst);
    host_.wait(arena.header().fenced_entries, 1, kStoresLeave);
  }
  slot_ = arena.slot(info_.slot);
  attention_seen_ = slot_->attention.load(std::memory_order_acquire);
  poster_ = std::make_unique<Poster>(*this, host_, arena, *std::move(poster));
  plane_ = std::make_unique<hca::MemoryPlane>(arena, *poster_, info_.slot,
                                              path_from(host_.setting("SOFTIB_MEMORY_PATH")));
  if (!plane_->valid()) {
    reason = fmt::format(
        "no room for {} MiB of tables, which are reserved rather than used: "
        "raise the limit of data (RLIMIT_DATA, `ulimit -d unlimited`)",
        hca::MemoryPlane::kTableBytes >> 20);
    return Status::InsufficientResources;
  }
  plane_->introduce({pid_, host_.nameplate()});
  regions_ = std::make_unique<Regions>(*this);
  qps_ = static_cast<std::atomic<QueuePair*>*>(std::calloc(hca::kMaxQps, sizeof *qps_));
  srqs_ = static_cast<std::atomic<SharedReceiveQueue*>*>(std::calloc(hca::kMaxSrqs, sizeof *srqs_));
  cqs_ = static_cast<std::atomic<CompletionQueue*>*>(std::calloc(hca::kMaxCqs, sizeof *cqs_));
  if (qps_ == nullptr || srqs_ == nullptr || cqs_ == nullptr) {
    reason = "out of memory";
    return Status::InsufficientResources;
  }
  auto service = host_.start_thread("softib-service", [this] { service_loop(); });
  if (!service) {
    reason = "cannot start the service thread (RLIMIT_NPROC?)";
    return service.error();
  }
  service_ = *std::move(service);
  auto event_thread = host_.start_thread("softib-events", [this] { event_loop(); });
  if (!event_thread) {
    reason = "cannot start the event thread (RLIMIT_NPROC?)";
    return event_thread.error();
  }
  event_thread_ = *std::move(event_thread);
  return Status::Ok;
}

Status Process::map_arena(platform::NativeHandle file, std::string& reason) {
  auto mapping = host_.map(file, hca::kArenaSpace, reason);
  if (!mapping) return mapping.error();
  mapping_ = *std::move(mapping);
  arena_file_ = std::make_unique<MappedArena>(*mapping_);
  if (arena_file_->size_at_least(hca::place::kHeap) < hca::place::kHeap) {
    reason = "device memory is shorter than its tables";
    return Status::Malformed;
  }
  const hca::Arena arena(mapping_->base(), *arena_file_);
  if (arena.header().magic != hca::kArenaMagic || arena.header().version != hca::kLayoutVersion) {
    reason = "device memory has another layout: softibd and this library are of different versions";
    return Status::Malformed;
  }
  return Status::Ok;
}

Process::~Process() {
  stopping_.store(true, std::memory_order_release);
  if (event_channel_) event_channel_->shut_down();
  if (poster_) poster_->kick(info_.slot);
  event_thread_.reset();
  service_.reset();
  // The connection goes first: softibd tears down what is left before the memory is unmapped here.
  if (main_) main_->shut_down();
  main_.reset();
  regions_.reset();
  plane_.reset();
  poster_.reset();
  std::free(qps_);
  std::free(srqs_);
  std::free(cqs_);
}

Result<std::uint64_t> Process::call_bytes(control::Code code, std::uint32_t file,
                                          std::span<const std::byte> in, std::span<std::byte> out,
                                          std::span<const int> handles) {
  platform::ControlReply reply =
      main_->call(static_cast<std::uint32_t>(code), file, in, out, handles);
  if (reply.status != Status::Ok) return failed(reply.status, std::move(reply.reason));
  if (reply.out_size < out.size()) {
    return failed(Status::Malformed, "softibd's answer is too short");
  }
  return reply.information;
}

void Process::wait_for_submitted() {
  std::uint64_t number = submitted_.load(std::memory_order_acquire);
  main_->settle();
  submitted_.compare_exchange_strong(number, 0, std::memory_order_acq_rel);
}

Result<std::unique_ptr<Hca>> Process::open_hca(std::uint64_t node_guid) {
  return Hca::open(*this, node_guid);
}

Result<std::unique_ptr<CompletionChannel>> Process::create_channel() {
  platform::NativeHandle read_end;
  platform::NativeHandle write_end;
  if (const Status made = host_.make_pipe(read_end, write_end); made != Status::Ok) {
    return failed(made, "cannot make a pipe for a completion channel (RLIMIT_NOFILE?)");
  }
  const std::array<int, 2> handles{read_end.get(), write_end.get()};
  auto handle = call_bytes(control::Code::CreateChannel, 0, {}, {}, handles);
  if (!handle) return handle.error();
  return std::make_unique<CompletionChannel>(*this, static_cast<std::uint32_t>(*handle),
                                             std::move(read_end));
}

Status CompletionChannel::destroy() {
  auto& process = static_cast<Process&>(process_);
  const control::IndexIn in{handle_, 0};
  auto done = process.call(control::Code::DestroyChannel, 0, in);
  if (!done && done.error() != Status::Disconnected) return done.error();
  process.poster().forget_channel(index());
  return Status::Ok;
}

Result<std::uint64_t> Process::cq_cookie(std::uint64_t cq_index) {
  if (cq_index >= hca::kMaxCqs) return Status::NotFound;
  const CompletionQueue* cq = cqs_[cq_index].load(std::memory_order_acquire);
  if (cq == nullptr) return Status::NotFound;
  return cq->cookie();
}

void Process::add(QueuePair& qp) {
  own_qps_.push_back(&qp);
  qps_[qp.index()].store(&qp, std::memory_order_release);
}

void Process::remove(QueuePair& qp) {
  std::erase(own_qps_, &qp);
  qps_[qp.index()].store(nullptr, std::memory_order_release);
  withdraw(qp);
}

void Process::add(SharedReceiveQueue& srq) {
  srqs_[srq.index()].store(&srq, std::memory_order_release);
}
void Process::remove(SharedReceiveQueue& srq) {
  srqs_[srq.index()].store(nullptr, std::memory_order_release);
}
void Process::add(CompletionQueue& cq) {
  cqs_[cq.index()].store(&cq, std::memory_order_release);
}
void Process::remove(CompletionQueue& cq) {
  cqs_[cq.index()].store(nullptr, std::memory_order_release);
}

void Process::enroll(QueuePair& qp) {
  waiting_lock_.lock();
  if (std::find(waiting_.begin(), waiting_.end(), &qp) == waiting_.end()) {
    waiting_.push_back(&qp);
    waiting_count_.store(static_cast<std::uint32_t>(waiting_.size()), std::memory_order_release);
  }
  waiting_lock_.unlock();
  // The service thread ticks as long as something waits; wake it if it sleeps without a deadline.
  if (timed_.load(std::memory_order_acquire) == 0) poster_->kick(info_.slot);
}

void Process::withdraw(QueuePair& qp) {
  waiting_lock_.lock();
  std::erase(waiting_, &qp);
  waiting_count_.store(static_cast<std::uint32_t>(waiting_.size()), std::memory_order_release);
  waiting_lock_.unlock();
}

void Process::flush_later() {
  has_unflushed_.store(true, std::memory_order_seq_cst);
  if (timed_.load(std::memory_order_seq_cst) == 0) poster_->kick(info_.slot);
}

void Process::run_waiting() {
  if (!waiting_lock_.try_lock()) return;  // somebody else is at it
  bool more = true;
  for (std::uint32_t round = 0; more && round < kRounds; ++round) more = give_turns();
  // The first one is first to what has come meanwhile: next time another one.
  if (waiting_.size() > 1) {
    waiting_.push_back(waiting_.front());
    waiting_.pop_front();
  }
  runs_.fetch_add(1, std::memory_order_relaxed);
  waiting_lock_.unlock();
}

// Gives one turn to each queue pair. Returns whether some could go on.
bool Process::give_turns() {
  bool more = false;
  for (std::size_t n = waiting_.size(); n > 0; --n) {
    QueuePair* qp = waiting_.front();
    waiting_.pop_front();
    const auto progress = qp->run_waiting(kTurn);
    if (progress != hca::Requester::Progress::Idle) waiting_.push_back(qp);
    more |= progress == hca::Requester::Progress::More;
  }
  waiting_count_.store(static_cast<std::uint32_t>(waiting_.size()), std::memory_order_release);
  return more;
}

void Process::serve_bounces() {
  hca::OpScope scope(*plane_, hca::executing::kOwn);
  plane_->serve_bounces();
}

}  // namespace ib::user
