// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// PeerFiles: what this process has of the files of other processes: the pipes of their completion
// channels, and mappings of the files with their adopted pages. softibd gives them by index and
// generation. They are descriptors, and memory that stays in use as long as it is mapped anywhere,
// so they are let go when their owner has destroyed them or has died (background/file_sweep.h).
//
// Thread safe.
#pragma once

#include "hca/layout/layout.h"
#include "hca/queues/late_events.h"
#include "platform/client_host.h"
#include "platform/control_channel.h"
#include "verbs/control.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace ib::user {

class PeerFiles {
 public:
  PeerFiles(platform::ClientHost& host, platform::ControlChannel& channel)
      : host_(host), channel_(channel) {}
  PeerFiles(const PeerFiles&) = delete;
  PeerFiles& operator=(const PeerFiles&) = delete;

  // The mapping of a peer's adopted pages and its size, or nullptr if softibd or the kernel refuses
  // it.
  std::byte* map(std::uint32_t index, std::uint32_t generation, std::uint64_t& size);
  // Writes the event of a completion queue.
  hca::Written write_event(std::uint32_t cq, std::uint32_t channel, std::uint32_t generation);
  // Whether that channel holds events that nobody has read.
  bool holds_events(std::uint32_t channel, std::uint32_t generation);

  void forget_channel(std::uint32_t index);
  // softibd is gone: readers of completion channels, here and in other processes, get the end of
  // their pipe once no process holds its other end.
  void let_channels_go();

  std::size_t count() const { return count_.load(std::memory_order_relaxed); }

  // A file that its owner has destroyed. Its mapping ends with this object; threads of this process
  // that execute work requests may still be using it.
  struct Gone {
    std::uint32_t index, generation;
    std::unique_ptr<platform::MappedFile> mapping;
  };
  // Finds out from softibd which files are gone, closes channels, and returns mappings.
  std::vector<Gone> take_gone();

 private:
  using Code = verbs::control::Code;
  using Name = verbs::control::GenerationIn;
  struct Channel {
    std::uint32_t generation = 0;
    platform::NativeHandle read_end;  // so that no write finds a pipe without readers
    platform::NativeHandle write_end;
  };
  struct Backing {
    std::uint32_t generation = 0;
    std::unique_ptr<platform::MappedFile> mapping;
  };

  // Returns nullptr and the reason if there is no descriptor for the channel.
  Channel* find_channel(const Name& name, Status& reason);
  Status get_channel(Channel& channel, const Name& name);
  std::unique_ptr<platform::MappedFile> get_backing(const Name& name);
  void drop_channel(std::uint32_t index);
  template <class Files>
  std::vector<Name> gone_among(Code code, const Files& files);
  void count_files() {
    count_.store(channels_.size() + backings_.size(), std::memory_order_relaxed);
  }

  platform::ClientHost& host_;
  platform::ControlChannel& channel_;
  std::mutex lock_;
  std::unordered_map<std::uint32_t, Channel> channels_;
  std::unordered_map<std::uint32_t, Backing> backings_;
  std::atomic<std::size_t> count_{0};
  bool channels_are_gone_ = false;
};

// The pipe of a completion queue's channel, as hca::send_event() uses it.
class EventPipe {
 public:
  EventPipe(PeerFiles& files, const hca::CqEntry& cq, std::uint32_t index)
      : files_(files), cq_(index), channel_(cq.id.channel), generation_(cq.id.channel_generation) {}
  hca::Written write() { return files_.write_event(cq_, channel_, generation_); }
  bool holds_some() { return files_.holds_events(channel_, generation_); }

 private:
  PeerFiles& files_;
  std::uint32_t cq_, channel_, generation_;
};

}  // namespace ib::user
