// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One rank of gloo over its ibverbs transport: each kind of allreduce, broadcasts from each rank,
// allgather and barriers, over and over with other numbers, each result checked. A barrier follows
// each: allgather and bcube write into the results of a rank as soon as another one begins the
// next, over TCP as well. Nothing is destroyed: gloo aborts if a buffer goes before its thread has
// seen the last completion, for which an algorithm does not wait.
//
// gloo_check RANK RANKS FOLDER DEVICE GID_INDEX        FOLDER is where the ranks of one job find
// each other.
#include <gloo/allgather_ring.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/barrier_all_to_one.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

using Numbers = std::vector<std::int64_t>;
using ContextPtr = std::shared_ptr<gloo::Context>;
constexpr int kRounds = 10;
constexpr int kCounts[] = {1, 1000, 300000};

std::int64_t number(int rank, std::size_t at, int round) {
  return (rank + 1) * std::int64_t(at % 1009) + round;
}

void fill(Numbers& numbers, int rank, int round) {
  for (std::size_t at = 0; at < numbers.size(); ++at) numbers[at] = number(rank, at, round);
}

void expect(std::int64_t is, std::int64_t wanted, const char* what, int count, int round,
            std::size_t at) {
  if (is == wanted) return;
  std::printf("%s of %d, round %d: element %zu is %lld, not %lld\n", what, count, round, at,
              (long long)is, (long long)wanted);
  std::exit(1);
}

template <typename Algorithm>
void check_allreduce(const ContextPtr& context, gloo::Barrier& barrier, const char* what,
                     int count) {
  Numbers& numbers = *new Numbers(count);
  auto& algorithm = *new Algorithm(context, {numbers.data()}, count);
  const std::int64_t ranks = context->size;
  for (int round = 0; round < kRounds; ++round) {
    fill(numbers, context->rank, round);
    algorithm.run();
    for (std::size_t at = 0; at < numbers.size(); ++at)
      expect(numbers[at], ranks * (ranks + 1) / 2 * std::int64_t(at % 1009) + ranks * round, what,
             count, round, at);
    barrier.run();
  }
}

void check_broadcast(const ContextPtr& context, gloo::Barrier& barrier, int root, int count) {
  Numbers& numbers = *new Numbers(count);
  auto& algorithm =
      *new gloo::BroadcastOneToAll<std::int64_t>(context, {numbers.data()}, count, root);
  for (int round = 0; round < kRounds; ++round) {
    fill(numbers, context->rank, round);
    algorithm.run();
    for (std::size_t at = 0; at < numbers.size(); ++at)
      expect(numbers[at], number(root, at, round), "broadcast", count, round, at);
    barrier.run();
  }
}

void check_allgather(const ContextPtr& context, gloo::Barrier& barrier, int count) {
  Numbers& mine = *new Numbers(count);
  Numbers& all = *new Numbers(std::size_t(count) * context->size);
  auto& algorithm =
      *new gloo::AllgatherRing<std::int64_t>(context, {mine.data()}, all.data(), count);
  for (int round = 0; round < kRounds; ++round) {
    fill(mine, context->rank, round);
    algorithm.run();
    for (std::size_t at = 0; at < all.size(); ++at)
      expect(all[at], number(int(at / count), at % count, round), "allgather", count, round, at);
    barrier.run();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const int rank = std::atoi(argv[1]);
  const int ranks = std::atoi(argv[2]);
  gloo::rendezvous::FileStore store(argv[3]);
  auto device = gloo::transport::ibverbs::CreateDevice({argv[4], 1, std::atoi(argv[5])});
  auto& context = *new auto(std::make_shared<gloo::rendezvous::Context>(rank, ranks));
  context->connectFullMesh(store, device);
  auto& to_all = *new gloo::BarrierAllToAll(context);
  auto& to_one = *new gloo::BarrierAllToOne(context);
  for (const int count : kCounts) {
    check_allreduce<gloo::AllreduceRing<std::int64_t>>(context, to_all, "allreduce, ring", count);
    check_allreduce<gloo::AllreduceRingChunked<std::int64_t>>(context, to_all,
                                                              "allreduce, chunked ring", count);
    check_allreduce<gloo::AllreduceHalvingDoubling<std::int64_t>>(context, to_all,
                                                                  "allreduce, halving", count);
    check_allreduce<gloo::AllreduceBcube<std::int64_t>>(context, to_all, "allreduce, bcube", count);
    for (int root = 0; root < ranks; ++root) check_broadcast(context, to_all, root, count);
    check_allgather(context, to_all, count);
  }
  for (int round = 0; round < kRounds; ++round) {
    to_all.run();
    to_one.run();
  }
  std::puts("all numbers are right");
  std::fflush(stdout);
  store.set("end of " + std::to_string(rank), {1});
  for (int other = 0; other < ranks; ++other) store.wait({"end of " + std::to_string(other)});
  std::_Exit(0);
}
