// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From a link that may be closed to the end of its stream: hints and deaths make suspects, rounds
// look at their links, and a stream without any is taken apart once nobody works with it.
#include "services/streams/stream_burial.h"

#include "hca/layout/shm_lock.h"
#include "streams/end_setup.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ib::services {

using Stage = Stream::Stage;

namespace {

// Between two rounds: the shortest while streams end, the longest while none does.
constexpr Duration kShortest = std::chrono::milliseconds(20);
constexpr Duration kLongest = std::chrono::milliseconds(320);
constexpr Duration kTimeOfHint =
    std::chrono::microseconds(20);  // so that they cost one in a hundred
constexpr Duration kSlowRound = std::chrono::seconds(10);
constexpr std::size_t kMostSlowLooks = 64;
// The hint may come before the close. A process that dies closes its connection to softibd and its
// links one after the other.
constexpr unsigned kLooksAfterHint = 2;
constexpr unsigned kLooksAfterDeath = 8;

}  // namespace

void StreamBurial::suspect(Stream& stream, unsigned looks) {
  stream.looks = std::max(stream.looks, looks);
  suspects_.insert(stream.number);
  arm();
}

// Whatever the dead process was in the middle of, at either end, cannot be gone on with.
void StreamBurial::on_process_ended(std::uint64_t session, std::uint32_t slot) {
  const std::uint32_t owner = hca::lock_owner(slot);
  for (const std::uint64_t number : table_.take_held(session)) {
    Stream& stream = *table_.find(number);
    const bool is_locked = std::any_of(
        stream.ends.begin(), stream.ends.end(),
        [owner](const Stream::End& end) { return end.shared && end.shared->lock.load() == owner; });
    if (is_locked) break_stream(stream);
    for (const Stream::End& end : stream.ends) {
      std::uint32_t holder = owner;
      if (end.shared != nullptr) end.shared->lock.compare_exchange_strong(holder, 0);
    }
    suspect(stream, kLooksAfterDeath);
  }
}

void StreamBurial::break_stream(const Stream& stream) {
  for (const Stream::End& end : stream.ends) {
    if (end.shared != nullptr) streams::break_stream(system_.arena, *end.shared);
  }
}

// --- rounds ---

void StreamBurial::arm() {
  const Instant soon = system_.executor.now() + kShortest;
  if (timer_ != nullptr && interval_ == kShortest) return;
  interval_ = kShortest;
  timer_ = system_.executor.at(soon, [this] { run(); });
}

void StreamBurial::run() {
  const std::unique_ptr<platform::Timer> running = std::move(timer_);
  bool is_busy = look_for_hints();
  is_busy |= look_at_suspects();
  look_slowly();
  try_endings();
  owner_.on_round();
  if (table_.is_empty() || timer_ != nullptr) return;
  is_busy |= !ending_.empty() || owner_.is_busy();
  interval_ = is_busy ? kShortest : std::min(interval_ * 2, kLongest);
  timer_ = system_.executor.at(system_.executor.now() + interval_, [this] { run(); });
}

// Returns whether there was one.
bool StreamBurial::look_for_hints() {
  bool found = false;
  const auto most = static_cast<std::size_t>(interval_ / kTimeOfHint);
  for (std::size_t i = std::min(most, table_.all().size()); i > 0; --i) {
    Stream& stream = table_.after(hint_cursor_);
    hint_cursor_ = stream.number;
    if (stream.stage != Stage::Open) continue;
    for (const Stream::End& end : stream.ends) {
      if (end.shared->close_hint.load(std::memory_order_relaxed) == 0) continue;
      end.shared->close_hint.store(0, std::memory_order_seq_cst);
      suspects_.insert(stream.number);
      stream.looks = std::max(stream.looks, kLooksAfterHint);
      found = true;
    }
  }
  return found;
}

bool StreamBurial::look_at_suspects() {
  const std::vector<std::uint64_t> numbers(suspects_.begin(), suspects_.end());
  for (const std::uint64_t number : numbers) {
    Stream* stream = table_.find(number);
    if (stream == nullptr || stream->looks <= 1) suspects_.erase(number);
    if (stream == nullptr) continue;
    if (stream->looks > 0) --stream->looks;
    look_at_links(*stream);
  }
  return !numbers.empty();
}

void StreamBurial::look_slowly() {
  const auto rounds = static_cast<std::size_t>(kSlowRound / std::max(interval_, kShortest));
  std::size_t looks = std::min(table_.all().size() / rounds + 1, kMostSlowLooks);
  for (; looks > 0 && !table_.is_empty(); --looks) {
    Stream& stream = table_.after(slow_cursor_);
    slow_cursor_ = stream.number;
    look_at_links(stream);
  }
}

void StreamBurial::look_at_links(Stream& stream) {
  if (stream.stage != Stage::Open) return;
  for (std::uint32_t end = 0; end < 2; ++end) {
    Stream::End& one = stream.ends[end];
    if (one.link_is_closed || stream.links[end].valid()) continue;
    one.link_is_closed = !host_.is_link_open(stream.number, end);
  }
  if (stream.ends[0].link_is_closed && stream.ends[1].link_is_closed) begin(stream, kForEver);
}

// --- the end of one ---

void StreamBurial::begin(Stream& stream, Duration patience) {
  if (stream.stage == Stage::Ending) return;
  const bool was_open = stream.stage == Stage::Open;
  stream.stage = Stage::Ending;
  stream.end_by = system_.executor.now() + patience;
  stream.question.reset();
  stream.watch.reset();
  stream.links = {};
  stream.tcp.reset();
  table_.leave_names(stream);
  table_.release(stream);
  suspects_.erase(stream.number);
  owner_.on_ending(stream, was_open);
  if (take_locks(stream)) return unmake(stream);
  ending_.insert(stream.number);
  arm();
}

// No process is in the middle of a call, and none will begin one.
bool StreamBurial::take_locks(const Stream& stream) const {
  const bool waits = system_.executor.now() < stream.end_by;
  for (const Stream::End& end : stream.ends) {
    if (end.shared == nullptr || end.shared->lock.load() == hca::kDaemonOwner) continue;
    if (!hca::try_lock(end.shared->lock, hca::kDaemonOwner) && waits) return false;
  }
  return true;
}

void StreamBurial::try_endings() {
  const std::vector<std::uint64_t> numbers(ending_.begin(), ending_.end());
  for (const std::uint64_t number : numbers) {
    Stream& stream = *table_.find(number);
    if (!take_locks(stream)) continue;
    ending_.erase(number);
    unmake(stream);
  }
}

void StreamBurial::hurry() {
  for (const std::uint64_t number : ending_) table_.find(number)->end_by = {};
  try_endings();
}

void StreamBurial::unmake(Stream& stream) {
  for (Stream::End& end : stream.ends) {
    if (end.shared != nullptr) streams::take_down(*std::exchange(end.shared, nullptr));
    end.growing.fail_all(Status::NotFound, "the stream has ended");
  }
  const std::array<StreamEnd*, 2> made{stream.ends[0].made.get(), stream.ends[1].made.get()};
  stream.waiting = 1;
  const auto done = [this, &stream] {
    if (--stream.waiting == 0) erase(stream);
  };
  for (StreamEnd* one : made) {
    if (one == nullptr) continue;
    ++stream.waiting;
    one->unmake(done);
  }
  done();
}

// From the executor: its ends are in the middle of a call.
void StreamBurial::erase(const Stream& stream) {
  system_.executor.post([this, number = stream.number] {
    table_.erase(number);
    if (table_.is_empty()) owner_.on_none_left();
  });
}

}  // namespace ib::services
