// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// EchoNetty PORT [SERVER CONNECTIONS]: an echo server over Netty, or its client, which compares what comes
// back.
import io.netty.bootstrap.Bootstrap;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.channel.socket.nio.NioSocketChannel;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

public class EchoNetty {
  static final int SIZE = 1 << 18;

  static class Echo extends ChannelInboundHandlerAdapter {
    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
      context.write(message);
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
      context.flush();
    }
  }

  static class Conversation extends ChannelInboundHandlerAdapter {
    final byte[] data = new byte[SIZE];
    final AtomicInteger right;
    final CountDownLatch done;
    int position = 0;
    boolean same = true;

    Conversation(Random random, AtomicInteger right, CountDownLatch done) {
      this.right = right;
      this.done = done;
      random.nextBytes(data);
    }

    @Override
    public void channelActive(ChannelHandlerContext context) {
      context.writeAndFlush(Unpooled.wrappedBuffer(data));
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
      ByteBuf part = (ByteBuf) message;
      while (part.isReadable()) same &= part.readByte() == data[position++];
      part.release();
      if (position == SIZE) context.close();
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
      if (same && position == SIZE) right.incrementAndGet();
      done.countDown();
    }
  }

  static ChannelInitializer<SocketChannel> all(Supplier<ChannelInboundHandlerAdapter> make) {
    return new ChannelInitializer<>() {
      @Override
      protected void initChannel(SocketChannel channel) {
        channel.pipeline().addLast(make.get());
      }
    };
  }

  public static void main(String[] words) throws Exception {
    int port = Integer.parseInt(words[0]);
    EventLoopGroup group = new NioEventLoopGroup(2);
    if (words.length == 1) {
      new ServerBootstrap().group(group).channel(NioServerSocketChannel.class).childHandler(all(Echo::new))
          .bind("0.0.0.0", port).sync().channel().closeFuture().sync();
      return;
    }
    int count = Integer.parseInt(words[2]);
    AtomicInteger right = new AtomicInteger();
    CountDownLatch done = new CountDownLatch(count);
    Random random = new Random(20261129);
    Bootstrap client = new Bootstrap().group(group).channel(NioSocketChannel.class)
        .handler(all(() -> new Conversation(random, right, done)));
    for (int i = 0; i < count; i++) client.connect(words[1], port).sync();
    done.await();
    group.shutdownGracefully(0, 1, TimeUnit.SECONDS).sync();
    System.out.println("all right: " + right.get());
  }
}
